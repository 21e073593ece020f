"""The checks of each level and version, in the order in which messages name their violations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from konverge_cluster._internal.embedded.pod_security import baseline_checks, restricted_checks
from konverge_cluster._internal.embedded.pod_security.pod_parts import PodParts, Violation
from konverge_cluster._internal.embedded.pod_security.security_policy import PRIVILEGED, LevelVersion

__all__ = ["find_violations", "format_violations"]

Check: TypeAlias = Callable[[PodParts], Violation | None]


class _VersionedCheck(NamedTuple):
    """A check from a minor version on.

    Attributes:
        name: The name of the check; of several entries with one name, the newest of the version applies.
        since: The first minor version.
        check: The check.
        replaces: The baseline check that the level ``restricted`` leaves out, because this one is stricter.
    """

    name: str
    since: int
    check: Check
    replaces: str = ""


def _except_on_windows(check: Check) -> Check:
    return lambda pod: None if pod.is_windows else check(pod)


def _except_in_user_namespaces(check: Check) -> Check:
    return lambda pod: None if pod.has_user_namespace else check(pod)


_BASELINE = (
    _VersionedCheck("appArmorProfile", 0, baseline_checks.check_app_armor),
    _VersionedCheck("capabilities", 0, baseline_checks.check_capabilities),
    _VersionedCheck("hostNamespaces", 0, baseline_checks.check_host_namespaces),
    _VersionedCheck("hostPathVolumes", 0, baseline_checks.check_host_paths),
    _VersionedCheck("hostPorts", 0, baseline_checks.check_host_ports),
    _VersionedCheck("probeHosts", 34, baseline_checks.check_probe_hosts),
    _VersionedCheck("privileged", 0, baseline_checks.check_privileged),
    _VersionedCheck("procMount", 0, baseline_checks.check_proc_mount),
    _VersionedCheck("procMount", 35, _except_in_user_namespaces(baseline_checks.check_proc_mount)),
    _VersionedCheck("seLinuxOptions", 0, baseline_checks.check_se_linux(0)),
    _VersionedCheck("seLinuxOptions", 31, baseline_checks.check_se_linux(31)),
    _VersionedCheck("seccompProfile", 0, baseline_checks.check_seccomp_annotations),
    _VersionedCheck("seccompProfile", 19, baseline_checks.check_seccomp),
    *(_VersionedCheck("sysctls", minor, baseline_checks.check_sysctls(minor)) for minor in (0, 27, 29, 32)),
    _VersionedCheck("windowsHostProcess", 0, baseline_checks.check_windows_host_process),
)
_ESCALATION = restricted_checks.check_privilege_escalation
_CAPABILITIES = restricted_checks.check_dropped_capabilities
_SECCOMP = restricted_checks.check_required_seccomp
_RESTRICTED = (
    _VersionedCheck("allowPrivilegeEscalation", 8, _ESCALATION),
    _VersionedCheck("allowPrivilegeEscalation", 25, _except_on_windows(_ESCALATION)),
    _VersionedCheck("droppedCapabilities", 22, _CAPABILITIES, "capabilities"),
    _VersionedCheck("droppedCapabilities", 25, _except_on_windows(_CAPABILITIES), "capabilities"),
    _VersionedCheck("restrictedProcMount", 35, baseline_checks.check_proc_mount, "procMount"),
    _VersionedCheck("volumeTypes", 0, restricted_checks.check_volume_types, "hostPathVolumes"),
    _VersionedCheck("runAsNonRoot", 0, restricted_checks.check_non_root),
    _VersionedCheck("runAsNonRoot", 35, _except_in_user_namespaces(restricted_checks.check_non_root)),
    _VersionedCheck("runAsUser", 23, restricted_checks.check_root_user),
    _VersionedCheck("runAsUser", 35, _except_in_user_namespaces(restricted_checks.check_root_user)),
    _VersionedCheck("requiredSeccompProfile", 19, _SECCOMP, "seccompProfile"),
    _VersionedCheck("requiredSeccompProfile", 25, _except_on_windows(_SECCOMP), "seccompProfile"),
)


def find_violations(pod: PodParts, required: LevelVersion) -> list[Violation]:
    """Return the violations of a level by a pod; empty if the level allows the pod."""
    if required.level == PRIVILEGED:
        return []
    checks = _list_checks(required.minor, is_restricted=required.level == "restricted")
    return [violation for check in checks if (violation := check(pod)) is not None]


def format_violations(violations: list[Violation]) -> str:
    """Return the violations with their details on one line."""
    return ", ".join(f"{violation.reason} ({violation.detail})" for violation in violations)


@cache  # two levels in fewer than forty versions
def _list_checks(minor: int, *, is_restricted: bool) -> tuple[Check, ...]:
    baseline = {entry.name: entry for entry in _BASELINE if entry.since <= minor}
    restricted = {entry.name: entry for entry in _RESTRICTED if entry.since <= minor} if is_restricted else {}
    replaced = {entry.replaces for entry in restricted.values()}
    kept: Iterator[_VersionedCheck] = (entry for name, entry in baseline.items() if name not in replaced)
    return tuple(entry.check for entry in (*kept, *restricted.values()))
