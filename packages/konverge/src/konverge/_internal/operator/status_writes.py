"""The status write of a reconcile with fields of the author, which the server can refuse or drop."""

from __future__ import annotations

from dataclasses import replace

from konverge._internal.operator.owner_context import OwnerContext
from konverge.errors import KonvergeError, StatusNotStoredError, format_error

__all__ = ["describe_refusal", "write_fields_first"]

# Prefix of the summary after the server did not store a field; the next reconcile recognizes it.
_NOT_STORED = "The status is not stored: "


def describe_refusal(error: KonvergeError) -> str:
    """Return the problem of a status that the server refused or did not store, for the summary."""
    return (_NOT_STORED if isinstance(error, StatusNotStoredError) else "status: ") + format_error(error)


async def write_fields_first(ctx: OwnerContext, condition_type: str) -> None:
    """Write the staged fields before a changed summary, if the server did not store such fields before.

    Only the response shows that the server dropped a field. With both in one write, the summary would change from an
    error to its usual state and back in each reconcile.

    Args:
        ctx: The context, with a staged summary.
        condition_type: The condition type of the summary.

    Raises:
        konverge.errors.KonvergeError: The status cannot be written.
    """
    stored, summary = ctx.read_stored_condition(condition_type), ctx.condition(condition_type)
    if stored is None or summary is None or not stored.message.startswith(_NOT_STORED):
        return
    ctx.restore_condition(condition_type)
    await ctx.flush_status()
    ctx.stage(replace(summary, last_transition_time=None))
