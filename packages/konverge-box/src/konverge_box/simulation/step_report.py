"""What came of a step."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["RecordedOperation", "StepReport"]


class RecordedOperation(Struct, frozen=True, kw_only=True):
    """Something that the operator did.

    Args:
        verb: ``created``, ``updated`` or ``deleted``.
        kind: Of the object.
        namespace: Of the object; empty for one without, and in that of the simulation.
        name: Of the object.
        is_status: Only its status was written.
    """

    verb: str
    kind: str
    namespace: str
    name: str
    is_status: bool = False

    @property
    def object_name(self) -> str:
        """The object as expectations have it."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class StepReport(Struct, frozen=True, kw_only=True):
    """What came of a step.

    Args:
        name: What the file calls it.
        operations: What the operator did, in order.
        conditions: What the conditions of its custom resources say afterwards, one text each.
        failures: The expectations that do not hold, each with its field and what was found.
        skipped: Why it was left out; empty when it was not.
        errors: What passes failed with.
        seconds: How long it took on the cluster's clock.
    """

    name: str
    operations: tuple[RecordedOperation, ...] = ()
    conditions: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    skipped: str = ""
    errors: tuple[str, ...] = ()
    seconds: float = 0.0
