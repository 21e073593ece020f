"""Conversion of the fields of each kind besides its name to short forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge_box._internal.katalog.condition_conversion import NotConvertedError
from konverge_box._internal.katalog.expression_translator import TemplateUse
from konverge_box._internal.katalog.findings import PROFILE, FindingReason, KatalogFields
from konverge_box._internal.katalog.go_template import has_template
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.value_conversion import (
    MISSING,
    convert_labels,
    convert_profiled_mapping,
    convert_text_field,
    convert_tree,
    copy_fields,
    set_if_present,
)
from konverge_box._internal.katalog.workload_conversion import OWNER_LABEL, convert_access_modes

__all__ = ["BODIES", "NOT_IN_BODIES"]

_COPY = FindingReason(
    "a copy of another object", "a box copies only Secrets and ConfigMaps", "read it with cross, and declare it"
)
_RBAC = "rbac.authorization.k8s.io"


def _convert_data(fields: KatalogFields, known: KnownFields, key: str) -> dict[str, Any]:
    if "data" not in fields:
        return {}
    return {
        key: convert_tree(
            fields, fields.take_typed("data", dict) or {}, fields.build_path("data"), TemplateUse.TEXT, known
        )
    }


def _convert_copy(fields: KatalogFields, known: KnownFields, key: str) -> dict[str, Any]:
    name, namespace = (
        convert_text_field(fields, key, TemplateUse.REQUIRED, known),
        convert_text_field(fields, "fromNamespace", TemplateUse.REQUIRED, known),
    )
    found: dict[str, Any] = {}
    if name is MISSING or namespace is MISSING:
        raise NotConvertedError
    if name is not None:
        found[key] = {"name": name, **({"namespace": namespace} if namespace else {})}
    elif namespace is not None:
        fields.reject_field("fromNamespace", "the namespace of a source", "there is no source", "name the source")
    return found | copy_fields(fields, known, "toNamespaces", use=TemplateUse.REQUIRED)


def _convert_secret(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found = copy_fields(fields, known, "type", use=TemplateUse.TEXT) | _convert_copy(fields, known, "fromSecret")
    if "tls" in fields:
        block = fields.take_mapping("tls")
        tls = {
            **copy_fields(block, known, "commonName", use=TemplateUse.REQUIRED),
            **copy_fields(block, known, "dnsNames", use=TemplateUse.REQUIRED),
        }
        valid_for = block.take_text("validFor")
        block.report_remaining()
        rotation = fields.peek("rotateAfter")
        if valid_for is None and isinstance(rotation, str) and not has_template(rotation):
            valid_for = rotation
        set_if_present(tls, "validFor", valid_for)
        found["tls"] = tls
        if fields.take("data") is not None:
            fields.reject_field("data", "data beside tls", "a Katalog ignores it as well", "remove it")
        found.pop("type", None)
    return found | _convert_data(fields, known, "stringData")


def _convert_config_map(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    return _convert_copy(fields, known, "fromConfigMap") | _convert_data(fields, known, "data")


def _convert_network_policy(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found: dict[str, Any] = {"podSelector": _convert_selector(convert_labels(fields, "podSelector", known))}
    types: list[str] = []
    for key, peers, type_ in (("ingress", "from", "Ingress"), ("egress", "to", "Egress")):
        if key in fields:
            types.append(type_)
            found[key] = [_convert_rule(rule, peers, known) for rule in fields.take_items(key)]
    declared = convert_tree(
        fields, fields.take_typed("policyTypes", list), fields.build_path("policyTypes"), TemplateUse.VALUE, known
    )
    found["policyTypes"] = declared or types
    if not declared and not types:
        raise NotConvertedError(FindingReason("a NetworkPolicy", "it has no convertible rules", "write its rules"))
    return found


def _convert_selector(chosen: dict[str, Any]) -> dict[str, Any]:
    return {"matchLabels": chosen} if chosen else {}


def _convert_rule(rule: KatalogFields, peers: str, known: KnownFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for peer in rule.take_items(peers):
        made: dict[str, Any] = {}
        for key in ("podSelector", "namespaceSelector"):
            if key in peer:
                made[key] = _convert_selector(convert_labels(peer, key, known))
        made |= copy_fields(peer, known, "ipBlock")
        peer.report_remaining()
        found.setdefault(peers, []).append(made)
    for port in rule.take_items("ports"):
        made = copy_fields(port, known, "protocol")
        set_if_present(made, "port", convert_text_field(port, "port", TemplateUse.NUMBER, known))
        port.report_remaining()
        found.setdefault("ports", []).append(made)
    rule.report_remaining()
    return found


def _convert_quota(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found = copy_fields(fields, known, "hard", use=TemplateUse.TEXT)
    return _require_field(found, "hard", "a ResourceQuota")


def _convert_limits(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    return _require_field(copy_fields(fields, known, "limits", use=TemplateUse.TEXT), "limits", "a LimitRange")


def _require_field(found: dict[str, Any], key: str, what: str) -> dict[str, Any]:
    if key not in found:
        raise NotConvertedError(FindingReason(what, f"it has no convertible {key}", "write them by hand"))
    return found


def _convert_role(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    return _require_field(copy_fields(fields, known, "rules", use=TemplateUse.REQUIRED), "rules", "a role")


def _build_binding_converter(default_kind: str) -> Callable[[KatalogFields, KnownFields], dict[str, Any]]:
    def convert_binding(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
        reference = fields.take_mapping("roleRef")
        name = convert_text_field(reference, "name", TemplateUse.REQUIRED, known)
        kind = convert_text_field(reference, "kind", TemplateUse.REQUIRED, known)
        reference.report_remaining()
        if name in (None, MISSING):
            raise NotConvertedError(FindingReason("a binding", "it has no role", "name one"))
        subjects = []
        for each in fields.take_items("subjects"):
            subject = copy_fields(each, known, "kind", "name", "namespace", use=TemplateUse.REQUIRED)
            each.report_remaining()
            if subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _RBAC
            subjects.append(subject)
        role = {"apiGroup": _RBAC, "kind": default_kind if kind in (None, MISSING) else kind, "name": name}
        return {"roleRef": role, "subjects": subjects}

    return convert_binding


def _convert_service(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found = copy_fields(fields, known, "type")
    if fields.take_typed("headless", bool):
        found["clusterIP"] = "None"
    port = convert_text_field(fields, "port", TemplateUse.NUMBER, known)
    target = convert_text_field(fields, "targetPort", TemplateUse.NUMBER, known)
    protocol = convert_text_field(fields, "protocol", TemplateUse.VALUE, known)
    if port in (None, MISSING):
        raise NotConvertedError(FindingReason("a Service", "it has no convertible port", "write it by hand"))
    if protocol in (None, MISSING):
        found["port"] = port
        set_if_present(found, "targetPort", target)
    else:
        target = port if target in (None, MISSING) else target
        found["ports"] = [{"port": port, "targetPort": target, "protocol": protocol}]
    found["selector"] = convert_labels(fields, "selector", known) or {OWNER_LABEL: "{{ metadata.name }}"}
    return found


def _convert_ingress(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    host = convert_text_field(fields, "host", TemplateUse.VALUE, known)
    path, path_type = (
        convert_text_field(fields, "path", TemplateUse.VALUE, known),
        convert_text_field(fields, "pathType", TemplateUse.VALUE, known),
    )
    service = convert_text_field(fields, "serviceName", TemplateUse.REQUIRED, known)
    port = convert_text_field(fields, "servicePort", TemplateUse.NUMBER, known)
    if service is MISSING or host is MISSING:
        raise NotConvertedError
    if service is None:
        raise NotConvertedError(FindingReason("an Ingress", "it has no Service", "name one with serviceName"))
    port = 80 if port in (None, MISSING) else port
    path = "/" if path in (None, MISSING) else path
    if host is not None and path_type in (None, "Prefix"):
        found |= {"host": host, "serviceName": service, "servicePort": port}
        if path != "/":
            found["path"] = path
    else:
        backend = {"service": {"name": service, "port": {"number": port}}}
        paths = [{"path": path, "pathType": path_type or "Prefix", "backend": backend}]
        found["rules"] = [{**({"host": host} if host is not None else {}), "http": {"paths": paths}}]
    key, _ = next(
        ((each, "") for each in ("className", "ingressClass", "ingressClassName") if each in fields), ("", "")
    )
    if key:
        set_if_present(found, "ingressClassName", convert_text_field(fields, key, TemplateUse.VALUE, known))
    if "tls" in fields:
        set_if_present(found, "tls", _convert_ingress_tls(fields, host, known))
    return found


def _convert_ingress_tls(fields: KatalogFields, host: Any, known: KnownFields) -> Any:
    if not fields.is_mapping("tls"):
        return convert_tree(fields, fields.take("tls"), fields.build_path("tls"), TemplateUse.REQUIRED, known)
    block = fields.take_mapping("tls")
    if block.take_typed("create", bool):
        block.reject_field(
            "create", "a certificate for an Ingress", "an Ingress generates none", "add a Secret with tls to onCreate"
        )
    if block.take_text("validFor") is not None:
        block.reject_field(
            "validFor", "the validity of a certificate", "an Ingress generates none", "set it on that Secret"
        )
    secret = convert_text_field(block, "secretName", TemplateUse.REQUIRED, known)
    hosts = convert_tree(block, block.take_typed("hosts", list), block.build_path("hosts"), TemplateUse.REQUIRED, known)
    block.report_remaining()
    entry: dict[str, Any] = {}
    if hosts or host is not None:
        entry["hosts"] = hosts or [host]
    entry["secretName"] = "{{ metadata.name }}-tls" if secret in (None, MISSING) else secret
    return [entry]


def _convert_scaling(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("minReplicas", "maxReplicas", "targetCPUUtilizationPercentage"):
        set_if_present(found, key, convert_text_field(fields, key, TemplateUse.NUMBER, known))
    if "scaleTargetRef" in fields:
        target = fields.take_mapping("scaleTargetRef")
        found["scaleTargetRef"] = copy_fields(target, known, "apiVersion", "kind", "name", use=TemplateUse.REQUIRED)
        target.report_remaining()
    elif (name := convert_text_field(fields, "deploymentRef", TemplateUse.REQUIRED, known)) not in (None, MISSING):
        found["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    if "scaleTargetRef" not in found:
        raise NotConvertedError(FindingReason("a HorizontalPodAutoscaler", "it has no target", "name its target"))
    set_if_present(found, "behavior", convert_profiled_mapping(fields, "behavior", known))
    return found


def _convert_budget(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for source in (fields, fields.take_mapping("behavior")):
        for key in ("minAvailable", "maxUnavailable"):
            set_if_present(found, key, convert_text_field(source, key, TemplateUse.NUMBER, known))
        if source is not fields:
            source.report_remaining({"profile": PROFILE})
    chosen = convert_labels(fields, "selector", known) or {OWNER_LABEL: "{{ metadata.name }}"}
    return found | {"selector": {"matchLabels": chosen}}


def _convert_claim(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found = copy_fields(fields, known, "storageClassName", "volumeMode", "volumeName")
    set_if_present(found, "storage", convert_text_field(fields, "storage", TemplateUse.TEXT, known))
    found["accessModes"] = convert_access_modes(fields, known)
    return _require_field(found, "storage", "a PersistentVolumeClaim")


def _convert_volume(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found = copy_fields(fields, known, "storageClassName")
    capacity = convert_text_field(fields, "capacity", TemplateUse.TEXT, known)
    if capacity not in (None, MISSING):
        found["capacity"] = {"storage": capacity}
    found["accessModes"] = convert_access_modes(fields, known)
    policy = convert_text_field(fields, "reclaimPolicy", TemplateUse.VALUE, known)
    found["persistentVolumeReclaimPolicy"] = "Retain" if policy in (None, MISSING) else policy
    path = convert_text_field(fields, "hostPath", TemplateUse.TEXT, known)
    if path not in (None, MISSING):
        found["hostPath"] = {"path": path}
    driver, handle = (
        convert_text_field(fields, "csiDriver", TemplateUse.TEXT, known),
        convert_text_field(fields, "csiVolumeHandle", TemplateUse.TEXT, known),
    )
    if driver not in (None, MISSING) or handle not in (None, MISSING):
        found["csi"] = {"driver": driver or "", "volumeHandle": handle or ""}
    return _require_field(found, "capacity", "a PersistentVolume")


def _convert_namespace(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    finalizers = fields.take_typed("finalizers", list)
    if finalizers is None:
        return {}
    made = convert_tree(fields, finalizers, fields.build_path("finalizers"), TemplateUse.REQUIRED, known)
    return {"manifest": {"metadata": {"finalizers": made}}}


def _convert_account(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    return copy_fields(fields, known, "automountServiceAccountToken")


def _convert_custom(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found = copy_fields(fields, known, "apiVersion", "kind")
    if "apiVersion" not in found or "kind" not in found:
        raise NotConvertedError(FindingReason("a custom resource", "its apiVersion or kind is missing", "add them"))
    if "spec" in fields:
        found["spec"] = convert_tree(
            fields, fields.take_typed("spec", dict) or {}, fields.build_path("spec"), TemplateUse.VALUE, known
        )
    if "status" in fields:
        fields.take("status")
        fields.reject_field("status", "the status of a child", "its own controller writes it", "remove it")
    if fields.take_typed("hasStatus", bool) is not None:
        fields.add_note("hasStatus", "the cluster determines whether a kind has a status")
    more = {key: fields.take(key) for key in fields.list_remaining()}
    if more:
        made = convert_tree(fields, more, fields.path, TemplateUse.VALUE, known)
        found["manifest"] = made
    return found


BODIES: dict[str, Callable[[KatalogFields, KnownFields], dict[str, Any]]] = {
    "namespaces": _convert_namespace,
    "secrets": _convert_secret,
    "configMaps": _convert_config_map,
    "networkPolicies": _convert_network_policy,
    "resourceQuotas": _convert_quota,
    "limitRanges": _convert_limits,
    "clusterRoles": _convert_role,
    "clusterRoleBindings": _build_binding_converter("ClusterRole"),
    "serviceAccounts": _convert_account,
    "roles": _convert_role,
    "roleBindings": _build_binding_converter("Role"),
    "custom": _convert_custom,
    "services": _convert_service,
    "persistentVolumes": _convert_volume,
    "persistentVolumeClaims": _convert_claim,
    "ingresses": _convert_ingress,
    "hpa": _convert_scaling,
    "pdb": _convert_budget,
}
"""The converters by kind of the Katalog."""

_COPIES = dict.fromkeys(
    ("fromNetworkPolicy", "fromResourceQuota", "fromLimitRange", "fromNamespace", "toNamespaces"), _COPY
)
NOT_IN_BODIES: dict[str, dict[str, FindingReason]] = {
    "networkPolicies": {**_COPIES, "profile": PROFILE},
    "resourceQuotas": {**_COPIES, "profile": PROFILE},
    "limitRanges": {**_COPIES, "profile": PROFILE},
}
"""By kind, the fields that its objects do not have in a box."""
