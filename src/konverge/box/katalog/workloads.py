"""What is the same for all kinds with pods: one container, its environment, probes, volumes, security."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.box.file.mistakes import Path
from konverge.box.katalog.expressions import Use
from konverge.box.katalog.findings import PROFILE, Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.values import MISSING, labels, put, text, tree, without_profile

__all__ = ["OWNER_LABEL", "label_pods", "pods"]

OWNER_LABEL = "orkestra-owner"
"""What Services select by there when they say nothing; here pods get it where something selects by it."""

_AUTOSCALE = Why("a scale by conditions", "replicas do not follow conditions here", "use horizontalPodAutoscalers")
_SAME: dict[str, tuple[str, Use]] = {
    "imagePullPolicy": ("imagePullPolicy", Use.VALUE),
    "command": ("command", Use.TEXT),
    "args": ("args", Use.TEXT),
    "workingDirectory": ("workingDir", Use.VALUE),
    "serviceAccountName": ("serviceAccountName", Use.VALUE),
    "nodeSelector": ("nodeSelector", Use.TEXT),
    "tolerations": ("tolerations", Use.VALUE),
    "affinity": ("affinity", Use.VALUE),
}
_NUMBERS: dict[str, tuple[str, ...]] = {
    "deployments": ("replicas",),
    "replicaSets": ("replicas",),
    "statefulSets": ("replicas",),
    "jobs": ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completions", "parallelism"),
    "cronJobs": (
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
        "startingDeadlineSeconds",
    ),
    "pods": (),
}
_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "periodSeconds",
    "timeoutSeconds",
    "failureThreshold",
    "successThreshold",
)


def pods(fields: Fields, kind: str, known: Known) -> dict[str, Any]:
    """The short forms of a workload."""
    found: dict[str, Any] = {}
    image, tag = text(fields, "image", Use.REQUIRED, known), text(fields, "tag", Use.REQUIRED, known)
    if image not in (None, MISSING):
        found["image"] = image if tag in (None, MISSING) else f"{image}:{tag}"
    for key in _NUMBERS[kind]:
        put(found, key, text(fields, key, Use.NUMBER, known))
    if kind in ("jobs", "cronJobs"):
        put(found, "suspend", text(fields, "suspend", Use.BOOLEAN, known))
    for key, (here, use) in _SAME.items():
        if key in fields:
            put(found, here, tree(fields, fields.take(key), fields.at(key), use, known))
    if mounts := fields.typed("volumeMounts", list):
        found["volumeMounts"] = tree(fields, mounts, fields.at("volumeMounts"), Use.VALUE, known)
    _port(fields, found, known)
    env = _environment(fields, known)
    more_env, sources = _environment_from(fields, known)
    if env or more_env:
        plain = not more_env and all(set(each) == {"name", "value"} for each in env)
        found["env"] = {each["name"]: each["value"] for each in env} if plain else [*env, *more_env]
    put(found, "envFrom", sources or None)
    put(found, "imagePullSecrets", _pull_secrets(fields, known))
    for key, here in (("resources", "resources"), ("securityContext", "securityContext")):
        put(found, here, without_profile(fields, key, known))
    put(found, "podSecurityContext", without_profile(fields, "podSecurity", known))
    _probes(fields, found, known)
    if "volumes" in fields:
        put(found, "volumes", _volumes(fields, known))
    if kind in ("deployments", "statefulSets"):
        _rolling_update(fields, kind, found, known)
    if kind == "statefulSets":
        put(found, "serviceName", text(fields, "serviceName", Use.VALUE, known))
        _claims(fields, found, known)
    if kind == "cronJobs":
        put(found, "schedule", text(fields, "schedule", Use.TEXT, known))
        policy = text(fields, "concurrencyPolicy", Use.VALUE, known)
        put(found, "concurrencyPolicy", policy.capitalize() if isinstance(policy, str) else policy)
    if "autoscale" in fields:
        fields.take("autoscale")
        fields.notes.list(fields.at("autoscale"), _AUTOSCALE)
    return found


def _port(fields: Fields, found: dict[str, Any], known: Known) -> None:
    port, protocol = text(fields, "port", Use.NUMBER, known), text(fields, "protocol", Use.VALUE, known)
    if port in (None, MISSING, 0):
        if protocol is not None:
            fields.refuse("protocol", "the protocol of a port", "there is no port", "name the port")
    elif protocol in (None, MISSING):
        found["port"] = port
    else:
        found["ports"] = [{"containerPort": port, "protocol": protocol}]


def _environment(fields: Fields, known: Known) -> list[dict[str, Any]]:
    value, at = fields.take("env"), fields.at("env")
    if isinstance(value, Mapping):  # early generations: by name, with the value or a mapping that has it
        value = [
            {"name": name, **(each if isinstance(each, Mapping) else {"value": each})} for name, each in value.items()
        ]
    elif value is not None and not isinstance(value, list):
        fields.refuse("env", "a value of another form", "expected a list", "look at it by hand")
        value = []
    found: list[dict[str, Any]] = []
    for index, each in enumerate(value or []):
        variable = Fields(fields.notes, each, (*at, index))
        name = text(variable, "name", Use.REQUIRED, known)
        made: dict[str, Any] = {"name": name}
        if "valueFrom" in variable:
            source = variable.take("valueFrom")
            put(made, "valueFrom", tree(variable, source, variable.at("valueFrom"), Use.VALUE, known))
        else:
            content = text(variable, "value", Use.TEXT, known)
            put(made, "value", "" if content is None else content)
        variable.close()
        if name not in (None, MISSING) and len(made) > 1:
            found.append(made)
        elif name is None:
            fields.notes.list(variable.path, Why("a variable", "it has no name", "remove it"))
    return found


def _environment_from(fields: Fields, known: Known) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Variables that are named one by one, and whole sources."""
    block = fields.below("envFrom")
    variables: list[dict[str, Any]] = []
    sources: list[dict[str, Any]] = []
    for key, reference in (("secretRef", "secretKeyRef"), ("configMapRef", "configMapKeyRef")):
        value = block.take(key)
        for index, each in enumerate(value if isinstance(value, list) else [value] if value is not None else []):
            at: Path = (*block.path, key, index)
            source = Fields(fields.notes, {"name": each} if isinstance(each, str) else each, at)
            name = text(source, "name", Use.REQUIRED, known)
            prefix, suffix = source.text("prefix") or "", source.text("suffix") or ""
            keys, optional = source.typed("keys", list), source.typed("optional", bool)
            source.close()
            if name in (None, MISSING):
                fields.notes.list(at, Why("a source of variables", "it has no name", "name it"))
                continue
            more = {} if optional is None else {"optional": optional}
            for word in keys or []:
                variables.append(
                    {"name": f"{prefix}{word}{suffix}", "valueFrom": {reference: {"name": name, "key": word, **more}}}
                )
            if suffix and not keys:
                source.refuse("suffix", "a suffix for all keys", "Kubernetes has only a prefix", "name the keys")
            if keys is None:
                sources.append({**({"prefix": prefix} if prefix else {}), key: {"name": name, **more}})
    block.close()
    return variables, sources


def _pull_secrets(fields: Fields, known: Known) -> list[dict[str, Any]] | None:
    value = fields.typed("imagePullSecrets", list)
    if value is None:
        return None
    names = tree(fields, value, fields.at("imagePullSecrets"), Use.VALUE, known)
    return [each if isinstance(each, dict) else {"name": each} for each in names]


def _probes(fields: Fields, found: dict[str, Any], known: Known) -> None:
    block = fields.below("probes")
    for word in ("startup", "liveness", "readiness"):
        if word in block:
            made = _probe(block.below(word), found, known)
            if made:
                found[f"{word}Probe"] = made
    block.close()


def _probe(probe: Fields, workload: dict[str, Any], known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if probe.take("profile") is not None:
        probe.notes.list(probe.at("profile"), PROFILE)
    for key in _PROBE_NUMBERS:
        put(found, key, text(probe, key, Use.NUMBER, known))
    for key in ("httpGet", "tcpSocket", "exec", "grpc"):
        if key in probe:
            put(found, key, tree(probe, probe.take(key), probe.at(key), Use.VALUE, known))
    kind, path = probe.text("type"), text(probe, "path", Use.VALUE, known)
    port, command = text(probe, "port", Use.NUMBER, known), probe.take("command")
    if port in (None, MISSING):
        ports = workload.get("ports")
        port = workload.get("port") or (ports[0]["containerPort"] if ports else None)
    match kind:
        case "http" | "tcp" | "grpc" if port is None:
            probe.refuse("type", "a probe", "neither it nor the container has a port", "name the port")
            return {}
        case "http":
            found["httpGet"] = {"path": path if path not in (None, MISSING) else "/", "port": port}
        case "tcp":
            found["tcpSocket"] = {"port": port}
        case "grpc":
            found["grpc"] = {"port": port}
        case "exec":
            found["exec"] = {"command": tree(probe, command, probe.at("command"), Use.TEXT, known)}
        case None if path is not None or command is not None:
            probe.notes.list(probe.path, Why("a probe", "its type is not said", "say type: http, tcp, exec or grpc"))
        case str():
            probe.refuse("type", "a probe", f"there is no type {kind[:40]!r}", "use http, tcp, exec or grpc")
    if kind in ("tcp", "grpc", "exec") and path is not None:
        probe.refuse("path", "a path", f"a probe of the type {kind} has none", "remove it")
    if kind in ("http", "tcp", "grpc") and command is not None:
        probe.refuse("command", "a command", f"a probe of the type {kind} has none", "remove it")
    probe.close()
    return found if {"httpGet", "tcpSocket", "exec", "grpc"} & found.keys() else {}


def _volumes(fields: Fields, known: Known) -> list[Any] | None:
    made = tree(fields, fields.typed("volumes", list), fields.at("volumes"), Use.VALUE, known)
    for volume in made or []:
        if not isinstance(volume, dict):
            continue
        for kind, name in (("secret", "secretName"), ("persistentVolumeClaim", "claimName")):
            source = volume.get(kind)
            if isinstance(source, dict) and "name" in source and name not in source:
                volume[kind] = {name: source.pop("name"), **source}
        if isinstance(volume.get("hostPath"), str):
            volume["hostPath"] = {"path": volume["hostPath"]}
    return made if isinstance(made, list) else None


def _rolling_update(fields: Fields, kind: str, found: dict[str, Any], known: Known) -> None:
    if "rollingUpdate" not in fields:
        return
    block = fields.below("rollingUpdate")
    if block.take("profile") is not None:
        fields.notes.list(block.at("profile"), PROFILE)
    bounds: dict[str, Any] = {}
    for key in ("maxSurge", "maxUnavailable"):
        value = text(block, key, Use.NUMBER, known)
        if key == "maxSurge" and kind == "statefulSets" and value is not None:
            block.refuse(key, "a surge", "a StatefulSet has none", "remove it")
        else:
            put(bounds, key, value)
    block.close()
    if bounds:
        found["strategy" if kind == "deployments" else "updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": bounds,
        }


def _claims(fields: Fields, found: dict[str, Any], known: Known) -> None:
    claims: list[dict[str, Any]] = []
    for each in fields.items("volumeClaimTemplates"):
        name = text(each, "name", Use.REQUIRED, known)
        name = "data" if name in (None, MISSING) else name
        mount = text(each, "mountPath", Use.REQUIRED, known)
        spec: dict[str, Any] = {"accessModes": each.take("accessModes") or ["ReadWriteOnce"]}
        _, storage_class = each.first("storageClass", "storageClassName")
        put(spec, "storageClassName", tree(each, storage_class, each.at("storageClass"), Use.VALUE, known))
        size = text(each, "storageSize" if "storageSize" in each else "storage", Use.REQUIRED, known)
        if size in (None, MISSING):
            fields.notes.list(each.path, Why("a claim", "it has no size that is known here", "write it by hand"))
            continue
        spec["resources"] = {"requests": {"storage": size}}
        each.close()
        claims.append({"metadata": {"name": name}, "spec": spec})
        found.setdefault("volumeMounts", []).append(
            {"name": name, "mountPath": "/data" if mount in (None, MISSING) else mount}
        )
    if claims:
        found["volumeClaimTemplates"] = claims


def label_pods(fields: Fields, found: dict[str, Any], known: Known) -> None:
    """Labels stand on the object and on its pods there."""
    made = labels(fields, "labels", known)
    if made:
        found["labels"] = made
        found["podLabels"] = dict(made)
