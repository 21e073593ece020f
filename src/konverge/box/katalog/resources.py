"""Resources of all kinds: their fields there as short forms here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from konverge.box.katalog.conditions import NotCarriedError, conditions
from konverge.box.katalog.expressions import Use, has_template
from konverge.box.katalog.findings import Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.values import MISSING, labels, text, tree
from konverge.box.katalog.workloads import OWNER_LABEL, PROFILE, label_pods, pods

__all__ = ["KINDS", "for_each", "resources"]

KINDS: dict[str, tuple[str, str]] = {
    "namespaces": ("namespaces", "-ns"),
    "secrets": ("secrets", "-secret"),
    "configMaps": ("configMaps", "-config"),
    "networkPolicies": ("networkPolicies", ""),
    "resourceQuotas": ("resourceQuotas", ""),
    "limitRanges": ("limitRanges", ""),
    "clusterRoles": ("clusterRoles", "-cluster-role"),
    "clusterRoleBindings": ("clusterRoleBindings", "-crb"),
    "serviceAccounts": ("serviceAccounts", "-sa"),
    "roles": ("roles", "-role"),
    "roleBindings": ("roleBindings", "-rolebinding"),
    "custom": ("custom", ""),
    "replicaSets": ("replicaSets", "-replicaset"),
    "deployments": ("deployments", "-deployment"),
    "services": ("services", "-svc"),
    "jobs": ("jobs", "-job"),
    "cronJobs": ("cronJobs", "-cronjob"),
    "statefulSets": ("statefulSets", ""),
    "persistentVolumes": ("persistentVolumes", ""),
    "persistentVolumeClaims": ("persistentVolumeClaims", ""),
    "ingresses": ("ingresses", "-ingress"),
    "hpa": ("horizontalPodAutoscalers", "-hpa"),
    "pdb": ("podDisruptionBudgets", "-pdb"),
    "pods": ("pods", "-pod"),
}
"""What they are called there, in the order in which they run; what they are called here; how a name ends by itself."""

_WORKLOADS = ("deployments", "replicaSets", "statefulSets", "pods", "jobs", "cronJobs")
_CLUSTER_SCOPED = ("namespaces", "clusterRoles", "clusterRoleBindings", "persistentVolumes")
_SLEEP = Why("a pause for tests", "a pass of konverge does not sleep", "remove it")
_COPY = Why("a copy of another object", "only Secrets and ConfigMaps are copied", "read it with cross, and write it")
_RBAC = "rbac.authorization.k8s.io"


def resources(fields: Fields, kind: str, known: Known, *, is_on_create: bool) -> list[tuple[Fields, dict[str, Any]]]:
    """The resources of one kind, each with where it stands; what has no counterpart is listed."""
    found: list[tuple[Fields, dict[str, Any]]] = []
    for each in fields.items(kind):
        try:
            found.append((each, _resource(each, kind, known, is_on_create=is_on_create)))
        except NotCarriedError as missing:
            why = missing.why or Why(
                "a resource", "a part that it needs has no counterpart", "see what is listed for it"
            )
            each.notes.list(each.path, why)
    return found


def for_each(fields: Fields, known: Known) -> tuple[dict[str, Any], Known]:
    """``forEach`` of something, and what its templates know besides.

    Raises:
        NotCarriedError: It has no counterpart; it is listed.
    """
    if "forEach" not in fields:
        return {}, known
    block = fields.below("forEach")
    field = (block.text("field") or "").removeprefix(".")
    name = block.text("as") or "item"
    block.close()
    if not field or has_template(field):
        fields.refuse("forEach", "a repetition", "its field is no path", "write a path such as spec.hosts")
        raise NotCarriedError
    item, value = known.item_type(tuple(field.split(".")))
    items = {**known.items, "item": item, name: item, "index": "number", "value": value}
    made = {"field": field} if name == "item" else {"field": field, "as": name}
    return {"forEach": made}, replace(known, items=items)


def _resource(fields: Fields, kind: str, known: Known, *, is_on_create: bool) -> dict[str, Any]:
    loop, known = for_each(fields, known)
    asked = conditions(fields, known)
    found = _identity(fields, kind, known) | loop | asked
    _lifecycle(fields, kind, found, is_on_create=is_on_create)
    found |= _BODIES[kind](fields, known) if kind in _BODIES else _workload(fields, kind, known)
    if kind == "secrets":
        _kept_values(fields, found, is_on_create=is_on_create)
    if kind in _WORKLOADS and "image" not in found:
        raise NotCarriedError(Why("a workload", "it has no image that is known here", "write it by hand"))
    fields.close(_KNOWN.get(kind))
    return found


def _identity(fields: Fields, kind: str, known: Known) -> dict[str, Any]:
    source = fields.below("metadata") if kind == "custom" else fields
    found: dict[str, Any] = {}
    name = text(source, "name", Use.REQUIRED, known)
    ending = KINDS[kind][1]
    if name is MISSING:
        raise NotCarriedError
    if name is not None:
        found["name"] = name
    elif ending:
        found["name"] = f"{{{{ metadata.name }}}}{ending}"
    namespace = text(source, "namespace", Use.REQUIRED, known)
    if namespace is MISSING:
        raise NotCarriedError
    if namespace is not None and kind in _CLUSTER_SCOPED:
        source.refuse("namespace", "a namespace", f"{kind} live in none", "remove it")
    elif namespace is not None:
        found["namespace"] = namespace
    if kind in ("deployments", "replicaSets", "statefulSets"):
        label_pods(source, found, known)
    elif made := labels(source, "labels", known):
        found["labels"] = made
    if made := labels(source, "annotations", known):
        found["annotations"] = made
    if kind == "custom":
        if source.typed("namespaced", bool) is not None:
            source.decide("namespaced", "the cluster says whether a kind has namespaces")
        source.close()
    return found


def _lifecycle(fields: Fields, kind: str, found: dict[str, Any], *, is_on_create: bool) -> None:
    keeps = fields.typed("reconcile", bool)
    if keeps and kind == "jobs":
        fields.decide("reconcile", "a Job runs once, here as there")
    elif keeps and is_on_create:
        found["reconcile"] = True
    elif keeps is not None:
        fields.decide("reconcile", "what stands here is kept so" if not is_on_create else "it is created once")
    if fields.take("sleep") is not None:
        fields.notes.list(fields.at("sleep"), _SLEEP)
    force = fields.typed("forceConflict", bool)
    if force is False:
        fields.refuse(
            "forceConflict", "no force", "a box always takes the fields that it declares", "leave out the field"
        )
    elif force:
        fields.decide("forceConflict", "a box always takes the fields that it declares")


def _workload(fields: Fields, kind: str, known: Known) -> dict[str, Any]:
    return pods(fields, kind, known)


def _put(found: dict[str, Any], key: str, value: Any) -> None:
    if value is not None and value is not MISSING:
        found[key] = value


def _same(fields: Fields, known: Known, *keys: str, use: Use = Use.VALUE) -> dict[str, Any]:
    """Fields that look the same here."""
    found: dict[str, Any] = {}
    for key in keys:
        if key in fields:
            _put(found, key, tree(fields, fields.take(key), fields.at(key), use, known))
    return found


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
    return found | _same(fields, known, "toNamespaces", use=Use.REQUIRED)


def _secret(fields: Fields, known: Known) -> dict[str, Any]:
    found = _same(fields, known, "type", use=Use.TEXT) | _copied(fields, known, "fromSecret")
    if "tls" in fields:
        block = fields.below("tls")
        tls = {
            **_same(block, known, "commonName", use=Use.REQUIRED),
            **_same(block, known, "dnsNames", use=Use.REQUIRED),
            **_same(block, known, "validFor"),
        }
        block.close()
        if "validFor" not in tls and fields.peek("rotateAfter"):
            tls["validFor"] = fields.peek("rotateAfter")
        found["tls"] = tls
        if fields.take("data") is not None:
            fields.refuse("data", "data beside tls", "the certificate takes its place, there as well", "remove it")
        found.pop("type", None)
    return found | _data(fields, known, "stringData")


def _kept_values(fields: Fields, found: dict[str, Any], *, is_on_create: bool) -> None:
    """``once`` and ``rotateAfter``, which count only where values stay as made."""
    once, after = fields.typed("once", bool), fields.text("rotateAfter")
    stays = is_on_create and not found.get("reconcile")
    for key, value in (("once", once), ("rotateAfter", after)):
        if value and not stays:
            why = "it counts only in onCreate without reconcile, there as well"
            fields.refuse(key, "values that are made once", why, "move the Secret to onCreate")
        elif value:
            found[key] = value
    if once is False:
        fields.decide("once", "values follow what is declared")


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
        made |= _same(peer, known, "ipBlock")
        peer.close()
        found.setdefault(peers, []).append(made)
    for port in rule.items("ports"):
        made = _same(port, known, "protocol")
        _put(made, "port", text(port, "port", Use.NUMBER, known))
        port.close()
        found.setdefault("ports", []).append(made)
    rule.close()
    return found


def _quota(fields: Fields, known: Known) -> dict[str, Any]:
    found = _same(fields, known, "hard", use=Use.TEXT)
    return _needed(found, "hard", "a ResourceQuota")


def _limits(fields: Fields, known: Known) -> dict[str, Any]:
    return _needed(_same(fields, known, "limits", use=Use.TEXT), "limits", "a LimitRange")


def _needed(found: dict[str, Any], key: str, what: str) -> dict[str, Any]:
    if key not in found:
        raise NotCarriedError(Why(what, f"it has no {key} that are known here", "write them out"))
    return found


def _role(fields: Fields, known: Known) -> dict[str, Any]:
    return _needed(_same(fields, known, "rules", use=Use.REQUIRED), "rules", "a role")


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
            subject = _same(each, known, "kind", "name", "namespace", use=Use.REQUIRED)
            each.close()
            if subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _RBAC
            subjects.append(subject)
        role = {"apiGroup": _RBAC, "kind": default_kind if kind in (None, MISSING) else kind, "name": name}
        return {"roleRef": role, "subjects": subjects}

    return make


def _service(fields: Fields, known: Known) -> dict[str, Any]:
    found = _same(fields, known, "type")
    if fields.typed("headless", bool):
        found["clusterIP"] = "None"
    port = text(fields, "port", Use.NUMBER, known)
    target = text(fields, "targetPort", Use.NUMBER, known)
    protocol = text(fields, "protocol", Use.VALUE, known)
    if port in (None, MISSING):
        raise NotCarriedError(Why("a Service", "it has no port that is known here", "write it by hand"))
    if protocol in (None, MISSING):
        found["port"] = port
        _put(found, "targetPort", target)
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
        _put(found, "ingressClassName", text(fields, key, Use.VALUE, known))
    if "tls" in fields:
        _put(found, "tls", _ingress_tls(fields, host, known))
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
        _put(found, key, text(fields, key, Use.NUMBER, known))
    if "scaleTargetRef" in fields:
        target = fields.below("scaleTargetRef")
        found["scaleTargetRef"] = _same(target, known, "apiVersion", "kind", "name", use=Use.REQUIRED)
        target.close()
    elif (name := text(fields, "deploymentRef", Use.REQUIRED, known)) not in (None, MISSING):
        found["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    if "scaleTargetRef" not in found:
        raise NotCarriedError(Why("a HorizontalPodAutoscaler", "it does not say what it scales", "name its target"))
    return found | _behavior(fields, known)


def _behavior(fields: Fields, known: Known) -> dict[str, Any]:
    if "behavior" not in fields:
        return {}
    block = fields.below("behavior")
    if block.take("profile") is not None:
        fields.notes.list(block.at("profile"), PROFILE)
    found = _same(block, known, *block.names())
    return {"behavior": found} if found else {}


def _budget(fields: Fields, known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for source in (fields, fields.below("behavior")):
        for key in ("minAvailable", "maxUnavailable"):
            _put(found, key, text(source, key, Use.NUMBER, known))
        if source is not fields:
            source.close({"profile": PROFILE})
    chosen = labels(fields, "selector", known) or {OWNER_LABEL: "{{ metadata.name }}"}
    return found | {"selector": {"matchLabels": chosen}}


def _claim(fields: Fields, known: Known) -> dict[str, Any]:
    found = _same(fields, known, "storageClassName", "volumeMode", "volumeName")
    _put(found, "storage", text(fields, "storage", Use.TEXT, known))
    found["accessModes"] = fields.typed("accessModes", list) or ["ReadWriteOnce"]
    return _needed(found, "storage", "a PersistentVolumeClaim")


def _volume(fields: Fields, known: Known) -> dict[str, Any]:
    found = _same(fields, known, "storageClassName")
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
    return _same(fields, known, "automountServiceAccountToken")


def _custom(fields: Fields, known: Known) -> dict[str, Any]:
    found = _same(fields, known, "apiVersion", "kind")
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


_BODIES: dict[str, Callable[[Fields, Known], dict[str, Any]]] = {
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
_COPIES = dict.fromkeys(
    ("fromNetworkPolicy", "fromResourceQuota", "fromLimitRange", "fromNamespace", "toNamespaces"), _COPY
)
_KNOWN: dict[str, dict[str, Why]] = {
    "networkPolicies": {**_COPIES, "profile": PROFILE},
    "resourceQuotas": {**_COPIES, "profile": PROFILE},
    "limitRanges": {**_COPIES, "profile": PROFILE},
}
