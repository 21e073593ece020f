"""How an operator is run: what differs between a laptop, a test and production."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How an operator is run.

    Args:
        namespaces: Only owners and objects of these namespaces; all when empty.
        grace: How long passes under way may take to end after the first signal.
    """

    namespaces: tuple[str, ...] = ()
    grace: timedelta = timedelta(seconds=30)
