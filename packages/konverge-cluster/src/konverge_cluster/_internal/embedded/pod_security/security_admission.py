"""The decision about a write: refused, accepted, or accepted with warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from konverge._internal.kube import Object, ObjectKey, find_controller
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.pod_security.pod_parts import PodParts
from konverge_cluster._internal.embedded.pod_security.security_checks import find_violations, format_violations
from konverge_cluster._internal.embedded.pod_security.security_policy import (
    PRIVILEGED,
    LevelVersion,
    NamespacePolicy,
    parse_policy,
)
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.validation.field_errors import new_invalid, quote

__all__ = ["check_pod_security"]

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "podtemplates": ("template",),
    "replicationcontrollers": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}
# The maximum number of pods that a change of a namespace checks, as on the real server.
_MOST_PODS = 3_000


def check_pod_security(
    resource: ServedResource, obj: Object, old: Object | None, subresource: str, storage: Storage
) -> list[str]:
    """Return the warnings about a write.

    Args:
        resource: The resource of the object.
        obj: The object to store.
        old: The stored object; None for a create.
        subresource: The subresource of the write.
        storage: The storage with the namespaces and their pods.

    Raises:
        ForbiddenError: The namespace does not accept the pod.
        InvalidError: A label of a namespace has an invalid value.
    """
    if subresource:
        return []
    if resource.storage == "namespaces":
        return _check_namespace(obj, old, storage)
    if resource.storage == "pods":
        if old is not None and _list_images(old) == _list_images(obj):
            return []
        policy = _find_policy(obj, storage)
        pod = _read_parts(obj)
        violations = find_violations(pod, policy.enforce)
        if violations:
            message = f"violates PodSecurity {quote(str(policy.enforce))}: {format_violations(violations)}"
            raise _new_forbidden(obj, message)
        return _list_warnings(pod, policy.warn)
    path = _TEMPLATES.get(resource.storage)
    if path is None:
        return []
    template: Any = obj
    for name in path:
        template = template.get(name) or {}
    return _list_warnings(_read_parts(template), _find_policy(obj, storage).warn) if template else []


def _read_parts(pod: Mapping[str, Any]) -> PodParts:
    return PodParts((pod.get("metadata") or {}).get("annotations") or {}, pod.get("spec") or {})


def _list_warnings(pod: PodParts, required: LevelVersion) -> list[str]:
    violations = find_violations(pod, required)
    if not violations:
        return []
    return [f"would violate PodSecurity {quote(str(required))}: {format_violations(violations)}"]


def _find_policy(obj: Object, storage: Storage) -> NamespacePolicy:
    namespace = storage.get("namespaces", ObjectKey("", obj["metadata"].get("namespace") or ""))
    return parse_policy({} if namespace is None else namespace.object["metadata"].get("labels") or {})


def _list_images(pod: Object) -> list[list[tuple[Any, Any]]]:
    """Return what a change of a pod must not leave alone to be checked again: its containers and their images."""
    spec = pod.get("spec") or {}
    return [
        [(container.get("name"), container.get("image")) for container in spec.get(kind) or ()]
        for kind in ("containers", "initContainers", "ephemeralContainers")
    ]


def _new_forbidden(pod: Object, reason: str) -> ForbiddenError:
    name = pod["metadata"].get("name", "")
    return ForbiddenError(f"pods {quote(name)} is forbidden: {reason}", details={"name": name, "kind": "pods"})


def _check_namespace(namespace: Object, old: Object | None, storage: Storage) -> list[str]:
    name = namespace["metadata"]["name"]
    policy = parse_policy(namespace["metadata"].get("labels") or {})
    before = None if old is None else parse_policy(old["metadata"].get("labels") or {})
    if policy.errors and (before is None or policy.errors != before.errors):
        raise new_invalid("", "Namespace", name, policy.errors)
    if before is None or policy.enforce == before.enforce or policy.enforce.level == PRIVILEGED:
        return []
    if policy.enforce.version == before.enforce.version and policy.enforce.strictness <= before.enforce.strictness:
        return []
    return _list_pod_warnings(name, policy.enforce, [stored.object for stored in storage.list_objects("pods", name)])


def _list_pod_warnings(namespace: str, required: LevelVersion, pods: list[Object]) -> list[str]:
    """Return the warnings about pods that a namespace has already and that its new level would refuse."""
    checked = _sort_by_controller(pods)[:_MOST_PODS]
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    for pod in checked:
        violations = find_violations(_read_parts(pod), required)
        if violations:
            reasons = ", ".join(violation.reason for violation in violations)
            counts[reasons] += 1
            name = pod["metadata"]["name"]
            names[reasons] = min(names.get(reasons, name), name)
    warnings = []
    if len(checked) < len(pods):
        counted = f"the first {len(checked)} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {counted}")
    if counts:
        level = quote(str(required))
        warnings.append(
            f"existing pods in namespace {quote(namespace)} violate the new PodSecurity enforce level {level}"
        )
    return [*warnings, *sorted(f"{_count_pods(names[text], count)}: {text}" for text, count in counts.items())]


def _sort_by_controller(pods: Iterable[Object]) -> list[Object]:
    """Return the pods with only one of each controller first."""
    first: list[Object] = []
    others: list[Object] = []
    seen: set[str] = set()
    for pod in pods:
        uid = (find_controller(pod) or {}).get("uid", "")
        (others if uid and uid in seen else first).append(pod)
        seen.add(uid)
    return [*first, *others]


def _count_pods(name: str, count: int) -> str:
    if count == 1:
        return name
    return f"{name} (and {count - 1} other {'pod' if count == 2 else 'pods'})"
