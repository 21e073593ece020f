"""The checks of the level ``baseline`` of the Pod Security Standards, each as a function of a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge_cluster._internal.embedded.pod_security.pod_parts import (
    PodParts,
    Violation,
    count_word,
    find_containers,
    list_setters,
    quote_all,
)
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = [
    "check_app_armor",
    "check_capabilities",
    "check_host_namespaces",
    "check_host_paths",
    "check_host_ports",
    "check_privileged",
    "check_probe_hosts",
    "check_proc_mount",
    "check_se_linux",
    "check_seccomp",
    "check_seccomp_annotations",
    "check_sysctls",
    "check_windows_host_process",
    "is_good_seccomp",
]

_APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"
_GOOD_PROFILES = ("RuntimeDefault", "Localhost")
_DEFAULT_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_SE_LINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SE_LINUX_ENGINE = "container_engine_t"
# The first minor version in which each sysctl is allowed.
_SYSCTLS: Mapping[str, int] = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}


def check_app_armor(pod: PodParts) -> Violation | None:
    """Forbid AppArmor profiles other than those of the runtime or the node."""
    bad_types: set[str] = set()

    def is_bad(context: Mapping[str, Any]) -> bool:
        profile = context.get("appArmorProfile")
        if profile is None or profile.get("type") in _GOOD_PROFILES:
            return False
        bad_types.add(profile.get("type") or "")
        return True

    setters = list_setters(find_containers(pod, is_bad), by_pod=is_bad(pod.context))
    annotations = sorted(
        f"{name}={quote(value)}"
        for name, value in pod.annotations.items()
        if name.startswith(_APP_ARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if annotations:
        word = count_word("annotation", len(annotations))
        setters = f"{setters} and {word}" if setters else word
    if not setters:
        return None
    values = [*sorted(bad_types), *annotations]
    detail = f"{setters} must not set AppArmor profile type to {quote_all(values)}"
    return Violation(count_word("forbidden AppArmor profile", len(values)), detail)


def check_capabilities(pod: PodParts) -> Violation | None:
    """Forbid capabilities beyond the default ones."""
    bad: set[str] = set()

    def is_bad(context: Mapping[str, Any]) -> bool:
        added = set((context.get("capabilities") or {}).get("add") or ()) - _DEFAULT_CAPABILITIES
        bad.update(added)
        return bool(added)

    containers = find_containers(pod, is_bad)
    if not containers:
        return None
    detail = f"{list_setters(containers)} must not include {quote_all(sorted(bad))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def check_host_namespaces(pod: PodParts) -> Violation | None:
    """Forbid the network, the processes and the IPC of the node."""
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def check_host_paths(pod: PodParts) -> Violation | None:
    """Forbid volumes of the node's files."""
    volumes = [volume.get("name", "") for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    if not volumes:
        return None
    return Violation("hostPath volumes", f"{count_word('volume', len(volumes))} {quote_all(volumes)}")


def check_host_ports(pod: PodParts) -> Violation | None:
    """Forbid ports of the node."""
    containers: list[str] = []
    ports: set[str] = set()
    for container in pod.iter_containers():
        used = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            containers.append(container.get("name", ""))
            ports |= used
    if not containers:
        return None
    uses = "uses" if len(containers) == 1 else "use"
    detail = f"{list_setters(containers)} {uses} {count_word('hostPort', len(ports))} {', '.join(sorted(ports))}"
    return Violation("hostPort", detail)


def check_probe_hosts(pod: PodParts) -> Violation | None:
    """Forbid hosts in probes and lifecycle handlers."""
    containers: set[str] = set()
    hosts: set[str] = set()
    for container in pod.iter_containers():
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        for handler in handlers:
            for action in ("httpGet", "tcpSocket"):
                host = ((handler or {}).get(action) or {}).get("host")
                if host:
                    containers.add(container.get("name", ""))
                    hosts.add(host)
    if not containers:
        return None
    uses = "uses" if len(containers) == 1 else "use"
    what = count_word("probe or lifecycle host", len(hosts))
    detail = f"{list_setters(sorted(containers))} {uses} {what} {quote_all(sorted(hosts))}"
    return Violation("probe or lifecycle host", detail)


def check_privileged(pod: PodParts) -> Violation | None:
    """Forbid privileged containers."""
    containers = find_containers(pod, lambda context: bool(context.get("privileged")))
    if not containers:
        return None
    return Violation("privileged", f"{list_setters(containers)} must not set securityContext.privileged=true")


def check_proc_mount(pod: PodParts) -> Violation | None:
    """Forbid unmasked process information."""
    bad: set[str] = set()

    def is_bad(context: Mapping[str, Any]) -> bool:
        mount = context.get("procMount")
        if mount in (None, "Default"):
            return False
        bad.add(mount)
        return True

    containers = find_containers(pod, is_bad)
    if not containers:
        return None
    detail = f"{list_setters(containers)} must not set securityContext.procMount to {quote_all(sorted(bad))}"
    return Violation("procMount", detail)


def check_se_linux(minor: int) -> Callable[[PodParts], Violation | None]:
    """Return the check of SELinux options in a minor version: other types, and any user or role."""
    allowed = _SE_LINUX_TYPES | ({_SE_LINUX_ENGINE} if minor >= 31 else set())

    def check(pod: PodParts) -> Violation | None:
        bad_types: set[str] = set()
        named: set[str] = set()

        def is_bad(context: Mapping[str, Any]) -> bool:
            options = context.get("seLinuxOptions") or {}
            names = {name for name in ("user", "role") if options.get(name)}
            named.update(names)
            bad_type = options.get("type") or ""
            if bad_type not in allowed:
                bad_types.add(bad_type)
            return bool(names) or bad_type not in allowed

        by_pod = is_bad(pod.context)
        setters = list_setters(find_containers(pod, is_bad), by_pod=by_pod)
        if not setters:
            return None
        parts = [f"{count_word('type', len(bad_types))} {quote_all(sorted(bad_types))}"] if bad_types else []
        parts += [f"{name} may not be set" for name in ("user", "role") if name in named]
        return Violation(
            "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(parts)}"
        )

    return check


def is_good_seccomp(profile: Mapping[str, Any]) -> bool:
    """Return True if the profile is that of the runtime or of the node."""
    return profile.get("type") in _GOOD_PROFILES


def check_seccomp(pod: PodParts) -> Violation | None:
    """Forbid seccomp profiles other than those of the runtime or the node (since 1.19)."""
    bad: set[str] = set()

    def is_bad(context: Mapping[str, Any]) -> bool:
        profile = context.get("seccompProfile")
        if profile is None or is_good_seccomp(profile):
            return False
        bad.add(profile.get("type") or "")
        return True

    by_pod = is_bad(pod.context)
    setters = list_setters(find_containers(pod, is_bad), by_pod=by_pod)
    if not setters:
        return None
    detail = f"{setters} must not set securityContext.seccompProfile.type to {quote_all(sorted(bad))}"
    return Violation("seccompProfile", detail)


def check_seccomp_annotations(pod: PodParts) -> Violation | None:
    """Forbid seccomp profiles in annotations other than those of the runtime or the node (before 1.19)."""
    names = [_SECCOMP_POD_ANNOTATION]
    names += [f"{_SECCOMP_ANNOTATION}{container.get('name', '')}" for container in pod.iter_containers()]
    bad = sorted(
        {
            f"{name}={quote(pod.annotations[name])}"
            for name in names
            if name in pod.annotations
            and pod.annotations[name] not in ("runtime/default", "docker/default")
            and not pod.annotations[name].startswith("localhost/")
        }
    )
    if not bad:
        return None
    return Violation("seccompProfile", f"forbidden {count_word('annotation', len(bad))} {', '.join(bad)}")


def check_sysctls(minor: int) -> Callable[[PodParts], Violation | None]:
    """Return the check of sysctls in a minor version: only those that concern the pod alone."""

    def check(pod: PodParts) -> Violation | None:
        names = [entry.get("name", "") for entry in pod.context.get("sysctls") or ()]
        bad = [name for name in names if _SYSCTLS.get(name, minor + 1) > minor]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def check_windows_host_process(pod: PodParts) -> Violation | None:
    """Forbid processes of a Windows node."""

    def is_bad(context: Mapping[str, Any]) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    setters = list_setters(find_containers(pod, is_bad), by_pod=is_bad(pod.context))
    if not setters:
        return None
    return Violation("hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true")
