"""Which pass is running: the identifier that ties together all that one reconcile logs.

The runtime sets it around each pass; tasks that the pass starts inherit it. `ReconciliationFilter` puts it on every
log record,
also on those of libraries, so that a formatter can show it: ``%(controller)s %(object)s %(reconcile_id)s``.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from dataclasses import dataclass

from konverge.kube import ObjectKey

__all__ = ["Reconciliation", "ReconciliationFilter", "current_reconciliation"]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One reconcile of one object.

    Args:
        controller: The controller's name.
        key: The object.
        reconcile_id: Tells this pass from all others.
        source: What called for it last.
    """

    controller: str
    key: ObjectKey
    reconcile_id: str
    source: str = ""

    @property
    def log_fields(self) -> dict[str, str]:
        """What a log record of the pass carries."""
        return {"controller": self.controller, "object": str(self.key), "reconcile_id": self.reconcile_id}


current_reconciliation: ContextVar[Reconciliation | None] = ContextVar("konverge_current_pass", default=None)
"""The pass that the running task belongs to; None outside of any."""


class ReconciliationFilter(logging.Filter):
    """Adds the fields of the running pass to each record; empty ones outside of any, so that a format never fails.

    It belongs on a handler: a filter on a logger does not see the records of that logger's children.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Complete the record; every record passes."""
        running = current_reconciliation.get()
        fields = dict.fromkeys(("controller", "object", "reconcile_id"), "") if running is None else running.log_fields
        for name, value in fields.items():
            record.__dict__.setdefault(name, value)
        return True
