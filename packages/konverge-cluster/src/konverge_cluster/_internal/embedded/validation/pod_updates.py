"""Validation of changes of a pod: most of its spec stays as it was created."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_forbidden,
    field_invalid,
)

__all__ = ["validate_pod_update"]

# The fields that an update of a pod can change.
_MUTABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def validate_pod_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield the errors of a change of a pod: for gates, tolerations, the deadline, and for immutable fields."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    yield from _validate_deadline(before, after)
    yield from _validate_tolerations(before, after)
    yield from _validate_gates(before, after)
    ignored = {"activeDeadlineSeconds", "schedulingGates", "tolerations"}
    if before.get("schedulingGates"):
        # A pod that is not scheduled yet can be restricted to fewer nodes.
        ignored.add("nodeSelector")
        yield from _validate_node_selector(before, after)
    if _without_mutable(before, ignored) != _without_mutable(after, ignored):
        yield field_forbidden("spec", f"pod updates may not change fields other than {_MUTABLE}")


def _validate_deadline(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldError]:
    old, new = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if old is not None and new is None:
        yield field_invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif old is not None and new > old:
        yield field_invalid("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value")


def _validate_tolerations(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldError]:
    kept = [_without_seconds(toleration) for toleration in after.get("tolerations") or ()]
    if any(_without_seconds(toleration) not in kept for toleration in before.get("tolerations") or ()):
        yield field_forbidden(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _without_seconds(toleration: Mapping[str, Any]) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _validate_gates(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldError]:
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        name = gate.get("name", "")
        if name not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield field_forbidden(f"spec.schedulingGates[{index}].name", detail)


def _validate_node_selector(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldError]:
    old, new = before.get("nodeSelector") or {}, after.get("nodeSelector") or {}
    if not old.items() <= new.items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield field_invalid("spec.nodeSelector", new, detail)


def _without_mutable(spec: Mapping[str, Any], ignored: set[str]) -> Object:
    immutable = {name: value for name, value in spec.items() if name not in ignored}
    for name in ("containers", "initContainers"):
        immutable[name] = [
            {key: value for key, value in container.items() if key != "image"} for container in spec.get(name) or ()
        ]
    return immutable
