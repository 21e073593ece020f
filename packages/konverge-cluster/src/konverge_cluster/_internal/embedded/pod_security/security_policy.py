"""The policy of a namespace: a level and a version for each mode, from the labels ``pod-security.kubernetes.io/*``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from konverge_cluster._internal.embedded.validation.field_errors import FieldError, field_invalid

__all__ = ["PRIVILEGED", "LevelVersion", "NamespacePolicy", "parse_policy"]

PRIVILEGED = "privileged"
"""The level that allows every pod."""

_LEVELS = (PRIVILEGED, "baseline", "restricted")
_LABEL = "pod-security.kubernetes.io/"
_LATEST = "latest"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
# A later version has the checks of this one, the last that changed a check.
_NEWEST_MINOR = 35


class LevelVersion(NamedTuple):
    """A level of the Pod Security Standards in a version.

    Attributes:
        level: ``privileged``, ``baseline`` or ``restricted``.
        version: ``latest``, or a minor version of Kubernetes, for example ``v1.30``.
    """

    level: str = PRIVILEGED
    version: str = _LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def strictness(self) -> int:
        """The rank of the level; a higher one forbids more."""
        return _LEVELS.index(self.level)

    @property
    def minor(self) -> int:
        """The minor version whose checks apply."""
        number = self.version.rpartition(".")[2]
        is_newest = self.version == _LATEST or len(number) > len(str(_NEWEST_MINOR))
        return _NEWEST_MINOR if is_newest else min(int(number), _NEWEST_MINOR)


class NamespacePolicy(NamedTuple):
    """The policy of a namespace.

    Attributes:
        enforce: Pods that violate it are refused.
        warn: Pods and workloads that violate it cause a warning.
        errors: The labels with invalid values; the strictest or the least strict value replaces them, depending on the
            mode.
    """

    enforce: LevelVersion
    warn: LevelVersion
    errors: tuple[FieldError, ...] = ()


def parse_policy(labels: Mapping[str, str]) -> NamespacePolicy:
    """Return the policy from the labels of a namespace.

    Without a label for warnings, a stricter enforced level applies to warnings too: workloads, which are not refused,
    then cause a warning. The mode ``audit`` has no effect here except that its labels must be valid.
    """
    errors: list[FieldError] = []
    enforce = _parse_mode(labels, "enforce", "restricted", errors)
    is_enforce_valid = labels.get(f"{_LABEL}enforce") in _LEVELS
    _parse_mode(labels, "audit", PRIVILEGED, errors)
    warn = _parse_mode(labels, "warn", PRIVILEGED, errors)
    if f"{_LABEL}warn" not in labels and is_enforce_valid and enforce.strictness > warn.strictness:
        version = warn.version if f"{_LABEL}warn-version" in labels else enforce.version
        warn = LevelVersion(enforce.level, version)
    return NamespacePolicy(enforce, warn, tuple(errors))


def _parse_mode(labels: Mapping[str, str], mode: str, fallback: str, errors: list[FieldError]) -> LevelVersion:
    level, version = labels.get(f"{_LABEL}{mode}", PRIVILEGED), labels.get(f"{_LABEL}{mode}-version", _LATEST)
    if level not in _LEVELS:
        errors.append(_new_error(mode, level, f"must be one of {', '.join(_LEVELS)}"))
        level = fallback
    if version != _LATEST and not _VERSION.fullmatch(version):
        errors.append(_new_error(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
        version = _LATEST
    return LevelVersion(level, version)


def _new_error(name: str, value: str, detail: str) -> FieldError:
    return field_invalid(f"metadata.labels[{_LABEL}{name}]", value, detail)
