"""The running reconcile: the identifier that connects all log records of one reconcile.

The runtime sets it around each reconcile; tasks that the reconcile starts inherit it. `ReconciliationFilter` adds it to
every log record, also to those of libraries, for formats such as ``%(controller)s %(object)s %(reconcile_id)s``.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from dataclasses import dataclass

from konverge._internal.kube import ObjectKey

__all__ = ["Reconciliation", "ReconciliationFilter", "current_reconciliation"]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Record of one reconcile of one object.

    Args:
        controller: The controller's name.
        key: The object.
        reconcile_id: Unique identifier of this reconcile.
        source: The latest cause of this reconcile.
    """

    controller: str
    key: ObjectKey
    reconcile_id: str
    source: str = ""

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields of each log record of the reconcile."""
        return {"controller": self.controller, "object": str(self.key), "reconcile_id": self.reconcile_id}


current_reconciliation: ContextVar[Reconciliation | None] = ContextVar("konverge_current_reconciliation", default=None)
"""The reconcile that the current task belongs to; None outside of any."""


class ReconciliationFilter(logging.Filter):
    """Adds the fields of the running reconcile to each record. Outside of any they are empty, so a format never fails.

    Attach it to a handler: a filter on a logger does not see the records of that logger's children.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields to the record; return True, so that every record is logged."""
        reconciliation = current_reconciliation.get()
        names = ("controller", "object", "reconcile_id")
        fields = dict.fromkeys(names, "") if reconciliation is None else reconciliation.log_fields
        for name, value in fields.items():
            record.__dict__.setdefault(name, value)
        return True
