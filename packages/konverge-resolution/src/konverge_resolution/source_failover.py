"""Fail-over: sources of one definition, asked one after the other, in the order in which they were given.

Only what is not found, not reached or not answered in time lets the next one be asked. A refusal, a digest or a
signature that does not fit end it: else whoever can make one source fail could choose another (reference facts, Q1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from konverge.clock import Clock
from konverge_resolution.engine import Requester, ResolutionResult
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Reference

__all__ = ["ReferenceResolver", "SkippedSource", "combine_errors", "resolve_first"]


class ReferenceResolver(Protocol):
    """Gets what a reference names: `konverge_resolution.engine.Engine`, or one that goes by a lock file."""

    async def resolve(
        self, reference: Reference, requester: Requester, *, seconds: float | None = None
    ) -> ResolutionResult:
        """As `konverge_resolution.engine.Engine.resolve`."""


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """A source that did not have it.

    Args:
        reference: The reference.
        error: Why not.
    """

    reference: Reference
    error: ResolutionError

    def __str__(self) -> str:
        return f"{self.reference.resolver}: {self.error.reason}: {self.error.message}"


async def resolve_first(
    source: ReferenceResolver,
    references: Sequence[Reference],
    requester: Requester,
    *,
    clock: Clock,
    seconds: float | None = None,
) -> tuple[Reference, ResolutionResult]:
    """Get what the first of these references names that names anything.

    Args:
        source: Resolves each.
        references: In the order in which they are asked; at least one.
        requester: Who asks.
        clock: The time.
        seconds: How long all of it may take; those that are left share what is left of it, so that one that hangs
            does not take the time of the next.

    Returns:
        The reference whose source has the definition, and the result of its resolution.

    Raises:
        ResolutionError: None has it, or one was refused. Of several failures it has the reason that may pass, if one
            may, and tells of all.
    """
    ends = None if seconds is None else clock.monotonic() + seconds
    passed_over: list[SkippedSource] = []
    for index, reference in enumerate(references):
        share = None if ends is None else max(0.0, ends - clock.monotonic()) / (len(references) - index)
        try:
            return reference, await source.resolve(reference, requester, seconds=share)
        except ResolutionError as error:
            if not error.traits.allows_failover:
                raise _add_skipped_sources(error, passed_over) from None
            passed_over.append(SkippedSource(reference, error))
    raise combine_errors(passed_over)


def combine_errors(failures: Sequence[SkippedSource]) -> ResolutionError:
    """One error for sources of which none has it.

    Args:
        failures: At least one; one alone stays as it is.
    """
    if not failures:
        return ResolutionError(Reason.INVALID_PARAMETERS, "expected at least one source, found none")
    if len(failures) == 1:
        return failures[0].error
    counts = next((each.error for each in failures if each.error.traits.is_transient), failures[-1].error)
    message = "; ".join(str(each) for each in failures)
    return ResolutionError(
        counts.reason,
        f"none of {len(failures)} sources has it: {message}",
        retry_after_seconds=counts.retry_after_seconds,
    )


def _add_skipped_sources(error: ResolutionError, passed_over: Sequence[SkippedSource]) -> ResolutionError:
    if not passed_over:
        return error
    message = ", ".join(f"{each.reference.resolver} ({each.error.reason})" for each in passed_over)
    return error.with_message(f"{error.message} (asked before: {message})")
