"""Validation of the security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_invalid,
    field_not_supported,
    field_required,
)

__all__ = ["validate_container_security", "validate_pod_security"]

_ID_RANGE = "must be between 0 and 2147483647, inclusive"
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SYSCTL_FORM = (
    r"must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
# The fields of a container's context, in the order in which the server writes the value of an error.
_CONTEXT_FIELDS = (
    "capabilities",
    "privileged",
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "readOnlyRootFilesystem",
    "allowPrivilegeEscalation",
    "procMount",
    "seccompProfile",
    "appArmorProfile",
)


def validate_pod_security(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of the security context of a pod spec."""
    context, at = spec.get("securityContext") or {}, f"{field}.securityContext"
    yield from _validate_ids(context, at, "runAsUser", "runAsGroup", "fsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group < 2**31:
            yield field_invalid(f"{at}.supplementalGroups[{index}]", group, _ID_RANGE)
    yield from _validate_profiles(context, at)
    seen: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        name = sysctl.get("name", "")
        if not name:
            yield field_required(f"{at}.sysctls[{index}].name")
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            yield field_invalid(f"{at}.sysctls[{index}].name", name, _SYSCTL_FORM)
        elif name in seen:
            yield field_duplicate(f"{at}.sysctls[{index}].name", name)
        seen.add(name)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield field_invalid(f"{at}.shareProcessNamespace", True, detail)
    if spec.get("hostUsers") is not False:
        for kind in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(kind) or ()):
                if (container.get("securityContext") or {}).get("procMount") == "Unmasked":
                    at = f"{field}.{kind}[{index}].securityContext.procMount"
                    yield field_invalid(at, "Unmasked", "`hostUsers` must be false to use `Unmasked`")


def validate_container_security(context: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of the security context of a container."""
    yield from _validate_ids(context, field, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        yield field_not_supported(f"{field}.procMount", mount, ("Default", "Unmasked"))
    yield from _validate_profiles(context, field)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield field_invalid(field, _to_server_form(context), detail)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield field_invalid(field, _to_server_form(context), detail)


def _validate_ids(context: Mapping[str, Any], field: str, *names: str) -> Iterator[FieldError]:
    for name in names:
        number = context.get(name)
        if number is not None and not 0 <= number < 2**31:
            yield field_invalid(f"{field}.{name}", number, _ID_RANGE)


def _validate_profiles(context: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for kind, label in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        profile = context.get(kind)
        if profile is None:
            continue
        at, local = f"{field}.{kind}", profile.get("localhostProfile")
        if profile.get("type") not in _PROFILES:
            if not profile.get("type"):
                yield field_required(f"{at}.type", "type is required when seccompProfile is set")
            else:
                yield field_not_supported(f"{at}.type", profile["type"], _PROFILES)
        elif profile["type"] == "Localhost" and not local:
            yield field_required(f"{at}.localhostProfile", f"must be set when {label} type is Localhost")
        elif profile["type"] != "Localhost" and local is not None:
            detail = f"can only be set when {label} type is Localhost"
            yield field_invalid(f"{at}.localhostProfile", local, detail)


def _to_server_form(context: Mapping[str, Any]) -> Object:
    """Return the context with the names of the server's own type, as the value of an error shows it."""
    written = {_capitalize(name): context.get(name) for name in _CONTEXT_FIELDS}
    capabilities = context.get("capabilities")
    if capabilities is not None:
        written["Capabilities"] = {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")}
    return written


def _capitalize(name: str) -> str:
    return "SELinuxOptions" if name == "seLinuxOptions" else name[:1].upper() + name[1:]
