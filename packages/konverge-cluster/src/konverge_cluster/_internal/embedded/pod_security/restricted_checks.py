"""The checks that the level ``restricted`` of the Pod Security Standards adds, each as a function of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_cluster._internal.embedded.pod_security.baseline_checks import check_seccomp, is_good_seccomp
from konverge_cluster._internal.embedded.pod_security.pod_parts import (
    PodParts,
    Violation,
    count_word,
    find_containers,
    list_setters,
    quote_all,
)

__all__ = [
    "check_dropped_capabilities",
    "check_non_root",
    "check_privilege_escalation",
    "check_required_seccomp",
    "check_root_user",
    "check_volume_types",
]

_ALLOWED_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
        "secret",
    }
)


def check_privilege_escalation(pod: PodParts) -> Violation | None:
    """Require that containers forbid privilege escalation."""
    containers = find_containers(pod, lambda context: context.get("allowPrivilegeEscalation") is not False)
    if not containers:
        return None
    detail = f"{list_setters(containers)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def check_dropped_capabilities(pod: PodParts) -> Violation | None:
    """Require that containers drop all capabilities, and allow only NET_BIND_SERVICE."""
    bad: set[str] = set()

    def keeps_some(context: Mapping[str, Any]) -> bool:
        return "ALL" not in ((context.get("capabilities") or {}).get("drop") or ())

    def adds_some(context: Mapping[str, Any]) -> bool:
        added = set((context.get("capabilities") or {}).get("add") or ()) - {"NET_BIND_SERVICE"}
        bad.update(added)
        return bool(added)

    keeping, adding = find_containers(pod, keeps_some), find_containers(pod, adds_some)
    details = []
    if keeping:
        details.append(f'{list_setters(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = quote_all(sorted(bad))
        details.append(f"{list_setters(adding)} must not include {what} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def check_volume_types(pod: PodParts) -> Violation | None:
    """Forbid volumes of the node and of storage servers."""
    names: list[str] = []
    bad_types: set[str] = set()
    for volume in pod.spec.get("volumes") or ():
        sources = [source for source, value in volume.items() if source != "name" and value is not None]
        if not _ALLOWED_VOLUMES.intersection(sources):
            names.append(volume.get("name", ""))
            bad_types.add(sources[0] if sources else "unknown")
    if not names:
        return None
    uses = "uses" if len(names) == 1 else "use"
    what = count_word("restricted volume type", len(bad_types))
    detail = f"{count_word('volume', len(names))} {quote_all(names)} {uses} {what} {quote_all(sorted(bad_types))}"
    return Violation("restricted volume types", detail)


def check_non_root(pod: PodParts) -> Violation | None:
    """Require that containers do not run as root."""
    by_pod = pod.context.get("runAsNonRoot")
    bad = find_containers(pod, lambda context: context.get("runAsNonRoot") is False)
    reason = "runAsNonRoot != true"
    if bad or by_pod is False:
        setters = list_setters(bad, by_pod=by_pod is False)
        return Violation(reason, f"{setters} must not set securityContext.runAsNonRoot=false")
    silent = find_containers(pod, lambda context: context.get("runAsNonRoot") is None)
    if silent and not by_pod:
        return Violation(reason, f"pod or {list_setters(silent)} must set securityContext.runAsNonRoot=true")
    return None


def check_root_user(pod: PodParts) -> Violation | None:
    """Forbid the user 0."""

    def is_root(context: Mapping[str, Any]) -> bool:
        return context.get("runAsUser") == 0

    setters = list_setters(find_containers(pod, is_root), by_pod=is_root(pod.context))
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def check_required_seccomp(pod: PodParts) -> Violation | None:
    """Require the seccomp profile of the runtime or of the node."""
    violation = check_seccomp(pod)
    if violation is not None or is_good_seccomp(pod.context.get("seccompProfile") or {}):
        return violation
    silent = find_containers(pod, lambda context: context.get("seccompProfile") is None)
    if not silent:
        return None
    needed = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {list_setters(silent)} {needed}")
