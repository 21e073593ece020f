"""What a rehearsal tells: values that a program reads as JSON (`msgspec.to_builtins`, fields in camel case).

None holds the value of a Secret, and none a text or a part of an object that is longer than `MAX_TEXT_LENGTH`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from konverge.kube import Condition

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
"""How many characters of one value are told."""

WriteAction = Literal["create", "update", "delete", "release"]
"""What a pass would do to an object; ``release`` takes the owner's reference off and leaves the rest."""

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
"""What a pass would come to with a resource."""


class _ReportPart(msgspec.Struct, frozen=True, rename="camel"):
    """One part of what is told."""


class FieldManagerInfo(_ReportPart, frozen=True, rename="camel"):
    """A field manager, as an entry of ``managedFields`` names it.

    Attributes:
        manager: Its name.
        operation: ``Apply`` or ``Update``.
        subresource: What it wrote through, for example ``scale``; empty for the object itself.
        since: When its entry last changed.
        is_ours: Tells whether it is the component.
    """

    manager: str
    operation: str
    subresource: str = ""
    since: str | None = None
    is_ours: bool = False


class FieldChange(_ReportPart, frozen=True, rename="camel"):
    """One field that a pass would change.

    Attributes:
        path: Where, as the server prints paths, for example ``.spec.replicas``.
        kind: What becomes of it: ``added``, ``removed``, ``changed``; ``claimed`` and ``left`` change no value: the
            component becomes an owner of the field, or ceases to be one.
        before: The live value, None when there is none.
        after: The value that the server would store, likewise.
        owners: Who owns the live field.
        taken_from: Those of them that lose it: others who wanted another value.
    """

    path: str
    kind: Literal["added", "removed", "changed", "claimed", "left"]
    before: Any = None
    after: Any = None
    owners: tuple[FieldManagerInfo, ...] = ()
    taken_from: tuple[FieldManagerInfo, ...] = ()


class ObjectChange(_ReportPart, frozen=True, rename="camel"):
    """One object that a pass would write.

    Attributes:
        action: What would be done.
        identity: ``<apiVersion>/<kind>/<namespace>/<name>``.
        fields: What would change; of a new object what the component wants of it, of one to be deleted nothing.
    """

    action: WriteAction
    identity: str
    fields: tuple[FieldChange, ...] = ()


class FieldRead(_ReportPart, frozen=True, rename="camel"):
    """A field that a function read of an object, and what it found there.

    Attributes:
        path: Where, for example ``status.conditions[Available].status``.
        value: What is there; of a list or a mapping that was only looked at, a summary.
        is_present: Tells whether there is anything.
    """

    path: str
    value: Any = None
    is_present: bool = True


class FunctionEvaluation(_ReportPart, frozen=True, rename="camel"):
    """What a function of a resource answered, and by which fields.

    Attributes:
        status: For example ``Scaling``.
        reason: Its reason.
        decided_by: The fields that it read, in order.
    """

    status: str
    reason: str = ""
    decided_by: tuple[FieldRead, ...] = ()


class OwnershipConflict(_ReportPart, frozen=True, rename="camel"):
    """A field that the component applies and somebody else writes too.

    Attributes:
        path: Where.
        writer: Who else.
        live: The live value.
        wanted: The component's.
        is_fought_over: Tells whether the two differ: each pass takes the field back.
    """

    path: str
    writer: FieldManagerInfo
    live: Any
    wanted: Any
    is_fought_over: bool


class PrerequisiteReport(_ReportPart, frozen=True, rename="camel"):
    """One prerequisite.

    Attributes:
        name: What it is.
        verdict: ``Met``, ``NotMet``, ``Error``; ``not asked`` behind one that is not met; ``passed`` for a component
            that has begun, whose prerequisites are never asked again.
        reason: Why.
    """

    name: str
    verdict: Literal["Met", "NotMet", "Error", "not asked", "passed"]
    reason: str = ""


class ResourceReport(_ReportPart, frozen=True, rename="camel"):
    """One resource of a component.

    Attributes:
        identity: ``<apiVersion>/<kind>/<namespace>/<name>``.
        mode: ``managed``, ``read-only``, ``delete`` or ``orphan``.
        is_auxiliary: Tells whether its health is left out.
        outcome: What the pass would come to with it. ``ignored`` is absent, and may be; ``halts``: nothing after it
            happens; ``suspended`` is there or on its way.
        exists: Tells whether there is an object; None where nobody asked.
        reason: Why it halts or fails.
        missing_data: The data cells that it waits for.
        guard: What its guard said.
        changes: What would be written.
        convergence: How far the object is.
        grace: How bad that would be, were the grace over now.
        suspension: How far it is suspended.
        contests: Who else writes what the component applies.
        adoption: Whose the object is, if it exists already and would be taken over, and what would be overruled.
        override: Which fields are stored with other values than those that are applied; empty for none.
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


class ConditionReport(_ReportPart, frozen=True, rename="camel"):
    """A condition of the owner.

    Attributes:
        status: ``True``, ``False`` or ``Unknown``.
        reason: The component's status.
        message: What it says.
        since: When the status last changed.
    """

    status: str
    reason: str
    message: str
    since: datetime | None

    @staticmethod
    def of(condition: Condition | None) -> ConditionReport | None:
        """That condition; None for none."""
        if condition is None:
            return None
        return ConditionReport(condition.status, condition.reason, condition.message, condition.last_transition_time)


class DryRunReport(_ReportPart, frozen=True, rename="camel"):
    """What one pass of a component would do and say, and why.

    Attributes:
        component: Its name.
        condition_type: The condition through which it reports.
        before: The condition that the owner has.
        after: The one that the pass would leave.
        gate: Its feature gate.
        prerequisites: In order.
        is_suspended: Tells whether it is to be suspended.
        resources: In order of registration.
        changes: What would be written, in order of the requests; not the owner's status.
        rule: Which rule makes the condition what it is.
        next: What happens next, and what the author can do, one sentence each.
        grace_ends: Until when (inclusive) a component that is not ready has grace; None when no clock runs.
        wakes_at: When the pass would ask for another one by itself.
        error: What failed; empty when nothing did.
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
    """The value, or the beginning of its text with its length."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text) <= MAX_TEXT_LENGTH:
        return value
    return f"{text[:MAX_TEXT_LENGTH]}… ({len(text)} characters)"
