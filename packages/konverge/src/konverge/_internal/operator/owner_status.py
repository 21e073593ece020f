"""The status of an author: its fields, where they are written, and assignments that nothing would write. Pure.

Three places report fields of a status class: the status function of `Operator.manages`, `OwnerContext.stage_status`,
and the JSON of the owner. An assignment to the owner's instance is not one of them: `StatusAssignments` finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from konverge._internal.component import ReconcileContext
from konverge._internal.crd.status_class import find_status_class
from konverge._internal.kube import Object
from konverge._internal.operator.owner_context import OwnerContext
from konverge.errors import ConfigurationError

__all__ = ["StatusAssignments", "StatusFunction"]

T = TypeVar("T")

StatusFunction: TypeAlias = Callable[[T, OwnerContext], object]
"""Returns the status of an owner after its components: an instance of the class of its field ``status``.

It can be async. It gets the typed owner and the context of the reconcile.
"""


class StatusAssignments:
    """The status of an owner's instance as it was read, to find later assignments.

    Args:
        owner: The owner as an instance of its class.
    """

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._class = find_status_class(type(owner))
        self._before = self._encode()

    def check(self, ctx: ReconcileContext) -> None:
        """Refuse an assignment to the instance, unless the staged status has the same value.

        Raises:
            ConfigurationError: A field was assigned and is not written.
        """
        kind = type(self._owner).__name__
        if self._class is None:
            if "status" in getattr(self._owner, "__dict__", {}):
                raise ConfigurationError(
                    f"{kind}.status: expected no assignment, because the class has no field status; add the field, and "
                    "return the status from the function of manages(status=...)"
                )
            return
        if unknown := self._class.find_unknown_attribute(getattr(self._owner, "status", None)):
            raise ConfigurationError(f"{kind}: {unknown}")
        now, status = self._encode(), ctx.owner.get("status")
        written: Object = status if isinstance(status, dict) else {}
        lost = [
            f"status.{name}"
            for name in sorted(now.keys() | self._before.keys())
            if now.get(name) != self._before.get(name) and now.get(name) != written.get(name)
        ]
        if lost:
            raise ConfigurationError(
                f"{kind}: {', '.join(lost)}: expected no assignment to the owner, because nothing writes it; return "
                "the status from the function of manages(status=...), or call ctx.stage_status(...)"
            )

    def _encode(self) -> Object:
        status = getattr(self._owner, "status", None)
        return {} if self._class is None or status is None else self._class.encode_fields(status)
