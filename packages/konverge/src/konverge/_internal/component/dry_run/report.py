"""The report of a dry run: values that convert to JSON (`msgspec.to_builtins`, fields in camel case).

The report contains no value of a Secret, and no text or part of an object above `MAX_TEXT_LENGTH`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from konverge._internal.kube import Condition

__all__ = [
    "MAX_TEXT_LENGTH",
    "ConditionReport",
    "DryRunReport",
    "FieldChange",
    "FieldManagerInfo",
    "FieldRead",
    "FunctionEvaluation",
    "ObjectChange",
    "OwnershipConflict",
    "PrerequisiteReport",
    "ResourceOutcome",
    "ResourceReport",
    "WriteAction",
    "truncate_value",
]

MAX_TEXT_LENGTH = 2_000
"""Maximum number of characters of one value."""

WriteAction = Literal["create", "update", "delete", "release"]
"""Write of a reconcile to an object; ``release`` removes the owner's reference and keeps the rest."""

ResourceOutcome = Literal[
    "applied",
    "read",
    "ignored",
    "halts",
    "suspended",
    "failed",
    "removed",
    "released",
    "left alone",
    "not reached",
]
"""Result of a reconcile for one resource."""


class _ReportPart(msgspec.Struct, frozen=True, rename="camel"):
    """Base class of the parts of a report."""


class FieldManagerInfo(_ReportPart, frozen=True, rename="camel"):
    """A field manager, as an entry of ``managedFields`` names it.

    Attributes:
        manager: The name of the field manager.
        operation: ``Apply`` or ``Update``.
        subresource: The subresource of its writes, for example ``scale``; empty for the object itself.
        since: The time of the last change of its entry.
        is_ours: True for the component's field manager.
    """

    manager: str
    operation: str
    subresource: str = ""
    since: str | None = None
    is_ours: bool = False


class FieldChange(_ReportPart, frozen=True, rename="camel"):
    """One field that the reconcile would change.

    Attributes:
        path: The path as the server prints it, for example ``.spec.replicas``.
        kind: ``added``, ``removed`` or ``changed``. ``claimed`` and ``left`` change no value: the component becomes an
            owner of the field, or gives it up.
        before: The live value; None for an absent field.
        after: The value that the server would store; None for an absent field.
        owners: The owners of the live field.
        taken_from: The owners that lose the field, because they applied another value.
    """

    path: str
    kind: Literal["added", "removed", "changed", "claimed", "left"]
    before: Any = None
    after: Any = None
    owners: tuple[FieldManagerInfo, ...] = ()
    taken_from: tuple[FieldManagerInfo, ...] = ()


class ObjectChange(_ReportPart, frozen=True, rename="camel"):
    """One object that the reconcile would write.

    Attributes:
        action: The sort of write.
        identity: ``<apiVersion>/<kind>/<namespace>/<name>``.
        fields: The changed fields; for a new object its desired fields, for a deletion none.
    """

    action: WriteAction
    identity: str
    fields: tuple[FieldChange, ...] = ()


class FieldRead(_ReportPart, frozen=True, rename="camel"):
    """A field that a function read from an object, with its value.

    Attributes:
        path: The path, for example ``status.conditions[Available].status``.
        value: The value; a summary for a list or a mapping without reads below it.
        is_present: True if the field exists.
    """

    path: str
    value: Any = None
    is_present: bool = True


class FunctionEvaluation(_ReportPart, frozen=True, rename="camel"):
    """The result of a function of a resource, and the fields that it read.

    Attributes:
        status: The status, for example ``Scaling``.
        reason: The reason of the result.
        decided_by: The fields that it read, in order.
    """

    status: str
    reason: str = ""
    decided_by: tuple[FieldRead, ...] = ()


class OwnershipConflict(_ReportPart, frozen=True, rename="camel"):
    """A field that the component applies and another field manager writes too.

    Attributes:
        path: The path of the field.
        writer: The other field manager.
        live: The live value.
        wanted: The value that the component applies.
        is_fought_over: True if the values differ, so that each reconcile takes the field back.
    """

    path: str
    writer: FieldManagerInfo
    live: Any
    wanted: Any
    is_fought_over: bool


class PrerequisiteReport(_ReportPart, frozen=True, rename="camel"):
    """One prerequisite.

    Attributes:
        name: The name of the prerequisite.
        verdict: ``Met``, ``NotMet`` or ``Error``; ``not asked`` after one that is not met; ``passed`` for a component
            that has begun, whose prerequisites are never checked again.
        reason: The reason of the verdict.
    """

    name: str
    verdict: Literal["Met", "NotMet", "Error", "not asked", "passed"]
    reason: str = ""


class ResourceReport(_ReportPart, frozen=True, rename="camel"):
    """One resource of a component.

    Attributes:
        identity: ``<apiVersion>/<kind>/<namespace>/<name>``.
        mode: ``managed``, ``read-only``, ``delete`` or ``orphan``.
        is_auxiliary: True if its health does not count.
        outcome: The result of the reconcile for it. ``ignored``: it is absent, which its options permit; ``halts``:
            later resources are not processed; ``suspended``: it is suspended or in transition.
        exists: True if the object exists; None if it was not read.
        reason: The reason why it halts or fails.
        missing_data: The data cells that it waits for.
        guard: The result of its guard.
        changes: The writes to the object.
        convergence: The converging status of the object.
        grace: The grade that it would have at the end of the grace period.
        suspension: The suspension status.
        contests: The conflicts with other field managers.
        adoption: For an object that would be adopted: its present controller or managers, and the overruled fields.
        override: The fields that are stored with other values than applied; empty for none.
        causes: The causes why a late object is not ready: its pods, claims and events.
        takeovers: The writers from which earlier reconciles took fields over, with the fields, how often and when.
    """

    identity: str
    mode: str
    is_auxiliary: bool
    outcome: ResourceOutcome
    exists: bool | None = None
    reason: str = ""
    missing_data: tuple[str, ...] = ()
    guard: FunctionEvaluation | None = None
    changes: tuple[ObjectChange, ...] = ()
    convergence: FunctionEvaluation | None = None
    grace: FunctionEvaluation | None = None
    suspension: FunctionEvaluation | None = None
    contests: tuple[OwnershipConflict, ...] = ()
    adoption: str = ""
    override: str = ""
    causes: tuple[str, ...] = ()
    takeovers: tuple[str, ...] = ()


class ConditionReport(_ReportPart, frozen=True, rename="camel"):
    """A condition of the owner.

    Attributes:
        status: ``True``, ``False`` or ``Unknown``.
        reason: The component's status.
        message: The message.
        since: The time of the last change of the status.
    """

    status: str
    reason: str
    message: str
    since: datetime | None

    @staticmethod
    def of(condition: Condition | None) -> ConditionReport | None:
        """Convert a condition; None stays None."""
        if condition is None:
            return None
        return ConditionReport(condition.status, condition.reason, condition.message, condition.last_transition_time)


class DryRunReport(_ReportPart, frozen=True, rename="camel"):
    """The writes and the condition of one reconcile of a component, with reasons.

    Attributes:
        component: The name of the component.
        condition_type: The condition type of the component.
        before: The condition that the owner has.
        after: The condition after the reconcile.
        gate: The state of its feature gate.
        prerequisites: The prerequisites in order.
        is_suspended: True if the component is suspended.
        resources: The resources in order of registration.
        changes: The writes in order of the requests, without the owner's status.
        rule: The rule behind the condition.
        next: The next events, and possible actions of the author, one sentence each.
        grace_ends: The end (inclusive) of the grace period of a component that is not ready; None if it is not running.
        wakes_at: The time of the requeue that the reconcile would request; None for none.
        error: The error; empty for none.
    """

    component: str
    condition_type: str
    before: ConditionReport | None
    after: ConditionReport | None
    gate: Literal["none", "on", "off", "Error"]
    prerequisites: tuple[PrerequisiteReport, ...]
    is_suspended: bool
    resources: tuple[ResourceReport, ...]
    changes: tuple[ObjectChange, ...]
    rule: str
    next: tuple[str, ...]
    grace_ends: datetime | None
    wakes_at: datetime | None
    error: str


def truncate_value(value: Any) -> Any:
    """Return the value or, above `MAX_TEXT_LENGTH`, the beginning of its text with its length."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text) <= MAX_TEXT_LENGTH:
        return value
    return f"{text[:MAX_TEXT_LENGTH]}… ({len(text)} characters)"
