"""The report of a simulation step."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["RecordedOperation", "StepReport"]


class RecordedOperation(Struct, frozen=True, kw_only=True):
    """One change that the operator made.

    Args:
        verb: ``created``, ``updated`` or ``deleted``.
        kind: The kind of the object.
        namespace: The namespace of the object; empty for none, and for the namespace of the simulation.
        name: The name of the object.
        is_status: Whether only the status was written.
    """

    verb: str
    kind: str
    namespace: str
    name: str
    is_status: bool = False

    @property
    def object_name(self) -> str:
        """The object in the form of expectations."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class StepReport(Struct, frozen=True, kw_only=True):
    """The report of one step.

    Args:
        name: The name of the step in the file.
        operations: The changes that the operator made, in order.
        conditions: The conditions of its custom resources after the step, one text each.
        failures: The unmet expectations, each with its field and the actual value.
        skipped: The reason if the step was skipped; otherwise empty.
        errors: The errors of failed reconciles.
        seconds: The duration on the cluster's clock.
    """

    name: str
    operations: tuple[RecordedOperation, ...] = ()
    conditions: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    skipped: str = ""
    errors: tuple[str, ...] = ()
    seconds: float = 0.0
