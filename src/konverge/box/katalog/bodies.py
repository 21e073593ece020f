"""What each kind has beside its name: its fields there as short forms here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.box.katalog.conditions import NotCarriedError
from konverge.box.katalog.expressions import Use
from konverge.box.katalog.findings import PROFILE, Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.values import MISSING, labels, put, same, text, tree, without_profile
from konverge.box.katalog.workloads import OWNER_LABEL

__all__ = ["BODIES", "NOT_IN_BODIES"]

_COPY = Why("a copy of another object", "only Secrets and ConfigMaps are copied", "read it with cross, and write it")
_RBAC = "rbac.authorization.k8s.io"


def _data(fields: Fields, known: Known, key: str) -> dict[str, Any]:
    if "data" not in fields:
        return {}
    return {key: tree(fields, fields.typed("data", dict) or {}, fields.at("data"), Use.TEXT, known)}


def _copied(fields: Fields, known: Known, key: str) -> dict[str, Any]:
    name, namespace = text(fields, key, Use.REQUIRED, known), text(fields, "fromNamespace", Use.REQUIRED, known)
    found: dict[str, Any] = {}
    if name is MISSING or namespace is MISSING:
        raise NotCarriedError
    if name is not None:
        found[key] = {"name": name, **({"namespace": namespace} if namespace else {})}
    elif namespace is not None:
        fields.refuse("fromNamespace", "the namespace of a source", "nothing is copied", "name the source")
    return found | same(fields, known, "toNamespaces", use=Use.REQUIRED)


def _secret(fields: Fields, known: Known) -> dict[str, Any]:
    found = same(fields, known, "type", use=Use.TEXT) | _copied(fields, known, "fromSecret")
    if "tls" in fields:
        block = fields.below("tls")
        tls = {
            **same(block, known, "commonName", use=Use.REQUIRED),
            **same(block, known, "dnsNames", use=Use.REQUIRED),
            **same(block, known, "validFor"),
        }
        block.close()
        if "validFor" not in tls and fields.peek("rotateAfter"):
            tls["validFor"] = fields.peek("rotateAfter")
        found["tls"] = tls
        if fields.take("data") is not None:
            fields.refuse("data", "data beside tls", "the certificate takes its place, there as well", "remove it")
        found.pop("type", None)
    return found | _data(fields, known, "stringData")


def _config_map(fields: Fields, known: Known) -> dict[str, Any]:
    return _copied(fields, known, "fromConfigMap") | _data(fields, known, "data")


def _network_policy(fields: Fields, known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {"podSelector": _selector(labels(fields, "podSelector", known))}
    types: list[str] = []
    for key, peers, type_ in (("ingress", "from", "Ingress"), ("egress", "to", "Egress")):
        if key in fields:
            types.append(type_)
            found[key] = [_rule(rule, peers, known) for rule in fields.items(key)]
    declared = fields.typed("policyTypes", list)
    found["policyTypes"] = declared or types
    if not declared and not types:
        raise NotCarriedError(Why("a NetworkPolicy", "it has no rules that are known here", "write its rules out"))
    return found


def _selector(chosen: dict[str, Any]) -> dict[str, Any]:
    return {"matchLabels": chosen} if chosen else {}


def _rule(rule: Fields, peers: str, known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for peer in rule.items(peers):
        made: dict[str, Any] = {}
        for key in ("podSelector", "namespaceSelector"):
            if key in peer:
                made[key] = _selector(labels(peer, key, known))
        made |= same(peer, known, "ipBlock")
        peer.close()
        found.setdefault(peers, []).append(made)
    for port in rule.items("ports"):
        made = same(port, known, "protocol")
        put(made, "port", text(port, "port", Use.NUMBER, known))
        port.close()
        found.setdefault("ports", []).append(made)
    rule.close()
    return found


def _quota(fields: Fields, known: Known) -> dict[str, Any]:
    found = same(fields, known, "hard", use=Use.TEXT)
    return _needed(found, "hard", "a ResourceQuota")


def _limits(fields: Fields, known: Known) -> dict[str, Any]:
    return _needed(same(fields, known, "limits", use=Use.TEXT), "limits", "a LimitRange")


def _needed(found: dict[str, Any], key: str, what: str) -> dict[str, Any]:
    if key not in found:
        raise NotCarriedError(Why(what, f"it has no {key} that are known here", "write them out"))
    return found


def _role(fields: Fields, known: Known) -> dict[str, Any]:
    return _needed(same(fields, known, "rules", use=Use.REQUIRED), "rules", "a role")


def _binding(default_kind: str) -> Callable[[Fields, Known], dict[str, Any]]:
    def make(fields: Fields, known: Known) -> dict[str, Any]:
        reference = fields.below("roleRef")
        name = text(reference, "name", Use.REQUIRED, known)
        kind = text(reference, "kind", Use.REQUIRED, known)
        reference.close()
        if name in (None, MISSING):
            raise NotCarriedError(Why("a binding", "it names no role", "name one"))
        subjects = []
        for each in fields.items("subjects"):
            subject = same(each, known, "kind", "name", "namespace", use=Use.REQUIRED)
            each.close()
            if subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _RBAC
            subjects.append(subject)
        role = {"apiGroup": _RBAC, "kind": default_kind if kind in (None, MISSING) else kind, "name": name}
        return {"roleRef": role, "subjects": subjects}

    return make


def _service(fields: Fields, known: Known) -> dict[str, Any]:
    found = same(fields, known, "type")
    if fields.typed("headless", bool):
        found["clusterIP"] = "None"
    port = text(fields, "port", Use.NUMBER, known)
    target = text(fields, "targetPort", Use.NUMBER, known)
    protocol = text(fields, "protocol", Use.VALUE, known)
    if port in (None, MISSING):
        raise NotCarriedError(Why("a Service", "it has no port that is known here", "write it by hand"))
    if protocol in (None, MISSING):
        found["port"] = port
        put(found, "targetPort", target)
    else:
        target = port if target in (None, MISSING) else target
        found["ports"] = [{"port": port, "targetPort": target, "protocol": protocol}]
    found["selector"] = labels(fields, "selector", known) or {OWNER_LABEL: "{{ metadata.name }}"}
    return found


def _ingress(fields: Fields, known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {}
    host = text(fields, "host", Use.VALUE, known)
    path, path_type = text(fields, "path", Use.VALUE, known), text(fields, "pathType", Use.VALUE, known)
    service = text(fields, "serviceName", Use.REQUIRED, known)
    port = text(fields, "servicePort", Use.NUMBER, known)
    if service is MISSING or host is MISSING:
        raise NotCarriedError
    if service is None:
        raise NotCarriedError(Why("an Ingress", "it names no Service", "name one with serviceName"))
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
        put(found, "ingressClassName", text(fields, key, Use.VALUE, known))
    if "tls" in fields:
        put(found, "tls", _ingress_tls(fields, host, known))
    return found


def _ingress_tls(fields: Fields, host: Any, known: Known) -> Any:
    if not fields.is_mapping("tls"):
        return tree(fields, fields.take("tls"), fields.at("tls"), Use.REQUIRED, known)
    block = fields.below("tls")
    if block.typed("create", bool):
        block.refuse(
            "create", "a certificate for an Ingress", "an Ingress makes none", "add a Secret with tls to onCreate"
        )
    if block.text("validFor") is not None:
        block.refuse("validFor", "how long a certificate is valid", "an Ingress makes none", "say it on that Secret")
    secret = text(block, "secretName", Use.REQUIRED, known)
    hosts = tree(block, block.typed("hosts", list), block.at("hosts"), Use.REQUIRED, known)
    block.close()
    entry: dict[str, Any] = {}
    if hosts or host is not None:
        entry["hosts"] = hosts or [host]
    entry["secretName"] = "{{ metadata.name }}-tls" if secret in (None, MISSING) else secret
    return [entry]


def _scaling(fields: Fields, known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("minReplicas", "maxReplicas", "targetCPUUtilizationPercentage"):
        put(found, key, text(fields, key, Use.NUMBER, known))
    if "scaleTargetRef" in fields:
        target = fields.below("scaleTargetRef")
        found["scaleTargetRef"] = same(target, known, "apiVersion", "kind", "name", use=Use.REQUIRED)
        target.close()
    elif (name := text(fields, "deploymentRef", Use.REQUIRED, known)) not in (None, MISSING):
        found["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    if "scaleTargetRef" not in found:
        raise NotCarriedError(Why("a HorizontalPodAutoscaler", "it does not say what it scales", "name its target"))
    put(found, "behavior", without_profile(fields, "behavior", known))
    return found


def _budget(fields: Fields, known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for source in (fields, fields.below("behavior")):
        for key in ("minAvailable", "maxUnavailable"):
            put(found, key, text(source, key, Use.NUMBER, known))
        if source is not fields:
            source.close({"profile": PROFILE})
    chosen = labels(fields, "selector", known) or {OWNER_LABEL: "{{ metadata.name }}"}
    return found | {"selector": {"matchLabels": chosen}}


def _claim(fields: Fields, known: Known) -> dict[str, Any]:
    found = same(fields, known, "storageClassName", "volumeMode", "volumeName")
    put(found, "storage", text(fields, "storage", Use.TEXT, known))
    found["accessModes"] = fields.typed("accessModes", list) or ["ReadWriteOnce"]
    return _needed(found, "storage", "a PersistentVolumeClaim")


def _volume(fields: Fields, known: Known) -> dict[str, Any]:
    found = same(fields, known, "storageClassName")
    capacity = text(fields, "capacity", Use.TEXT, known)
    if capacity not in (None, MISSING):
        found["capacity"] = {"storage": capacity}
    found["accessModes"] = fields.typed("accessModes", list) or ["ReadWriteOnce"]
    policy = text(fields, "reclaimPolicy", Use.VALUE, known)
    found["persistentVolumeReclaimPolicy"] = "Retain" if policy in (None, MISSING) else policy
    path = text(fields, "hostPath", Use.TEXT, known)
    if path not in (None, MISSING):
        found["hostPath"] = {"path": path}
    driver, handle = text(fields, "csiDriver", Use.TEXT, known), text(fields, "csiVolumeHandle", Use.TEXT, known)
    if driver not in (None, MISSING) or handle not in (None, MISSING):
        found["csi"] = {"driver": driver or "", "volumeHandle": handle or ""}
    return _needed(found, "capacity", "a PersistentVolume")


def _namespace(fields: Fields, known: Known) -> dict[str, Any]:
    finalizers = fields.typed("finalizers", list)
    if finalizers is None:
        return {}
    made = tree(fields, finalizers, fields.at("finalizers"), Use.REQUIRED, known)
    return {"manifest": {"metadata": {"finalizers": made}}}


def _account(fields: Fields, known: Known) -> dict[str, Any]:
    return same(fields, known, "automountServiceAccountToken")


def _custom(fields: Fields, known: Known) -> dict[str, Any]:
    found = same(fields, known, "apiVersion", "kind")
    if "apiVersion" not in found or "kind" not in found:
        raise NotCarriedError(Why("a custom resource", "it does not say its apiVersion and kind", "name them"))
    if "spec" in fields:
        found["spec"] = tree(fields, fields.typed("spec", dict) or {}, fields.at("spec"), Use.VALUE, known)
    if "status" in fields:
        fields.take("status")
        fields.refuse("status", "a status of a child", "its own controller writes that", "remove it")
    if fields.typed("hasStatus", bool) is not None:
        fields.decide("hasStatus", "the cluster says whether a kind has a status")
    more = {key: fields.take(key) for key in fields.names()}
    if more:
        made = tree(fields, more, fields.path, Use.VALUE, known)
        found["manifest"] = made
    return found


BODIES: dict[str, Callable[[Fields, Known], dict[str, Any]]] = {
    "namespaces": _namespace,
    "secrets": _secret,
    "configMaps": _config_map,
    "networkPolicies": _network_policy,
    "resourceQuotas": _quota,
    "limitRanges": _limits,
    "clusterRoles": _role,
    "clusterRoleBindings": _binding("ClusterRole"),
    "serviceAccounts": _account,
    "roles": _role,
    "roleBindings": _binding("Role"),
    "custom": _custom,
    "services": _service,
    "persistentVolumes": _volume,
    "persistentVolumeClaims": _claim,
    "ingresses": _ingress,
    "hpa": _scaling,
    "pdb": _budget,
}
"""By kind, as it is called there."""

_COPIES = dict.fromkeys(
    ("fromNetworkPolicy", "fromResourceQuota", "fromLimitRange", "fromNamespace", "toNamespaces"), _COPY
)
NOT_IN_BODIES: dict[str, dict[str, Why]] = {
    "networkPolicies": {**_COPIES, "profile": PROFILE},
    "resourceQuotas": {**_COPIES, "profile": PROFILE},
    "limitRanges": {**_COPIES, "profile": PROFILE},
}
"""By kind, fields that none of its objects has here."""
