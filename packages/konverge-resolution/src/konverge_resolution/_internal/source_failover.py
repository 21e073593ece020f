"""Failover: the sources of one definition are used one after the other, in the given order.

Only a missing definition, an unreachable source or a timeout leads to the next source. A refusal, a wrong digest or a
wrong signature ends the list: otherwise an attacker who makes one source fail could choose another (reference facts,
Q1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from konverge.clock import Clock
from konverge_resolution._internal.engine import Requester, ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Reference

__all__ = ["ReferenceResolver", "SkippedSource", "combine_errors", "resolve_first"]


class ReferenceResolver(Protocol):
    """Resolver of references: `engine.Engine`, or one with a lock file."""

    async def resolve(
        self, reference: Reference, requester: Requester, *, seconds: float | None = None
    ) -> ResolutionResult:
        """Resolve a reference as `engine.Engine.resolve` does."""


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """Source without the definition.

    Args:
        reference: The reference.
        error: The reason why it was skipped.
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
    """Resolve the first of these references whose source has the definition.

    Args:
        source: Resolves each reference.
        references: The references in the order of their use; at least one.
        requester: The namespace and user of the request.
        clock: The clock.
        seconds: Time limit in seconds for all references. The remaining ones share the remaining time, so that a source
            that hangs does not use up the time of the next.

    Returns:
        The reference whose source has the definition, and the result of its resolution.

    Raises:
        ResolutionError: No source has it, or one was refused. The error of several sources has the reason of a
            transient failure if there is one, and lists all failures.
    """
    ends = None if seconds is None else clock.monotonic() + seconds
    skipped: list[SkippedSource] = []
    for index, reference in enumerate(references):
        share = None if ends is None else max(0.0, ends - clock.monotonic()) / (len(references) - index)
        try:
            return reference, await source.resolve(reference, requester, seconds=share)
        except ResolutionError as error:
            if not error.traits.allows_failover:
                raise _add_skipped_sources(error, skipped) from None
            skipped.append(SkippedSource(reference, error))
    raise combine_errors(skipped)


def combine_errors(failures: Sequence[SkippedSource]) -> ResolutionError:
    """Combine the errors of several sources into one.

    Args:
        failures: At least one; a single one is returned unchanged.
    """
    if not failures:
        return ResolutionError(Reason.INVALID_PARAMETERS, "expected at least one source, found none")
    if len(failures) == 1:
        return failures[0].error
    first = next((failure.error for failure in failures if failure.error.traits.is_transient), failures[-1].error)
    message = "; ".join(str(failure) for failure in failures)
    return ResolutionError(
        first.reason,
        f"all {len(failures)} sources failed: {message}",
        retry_after_seconds=first.retry_after_seconds,
    )


def _add_skipped_sources(error: ResolutionError, skipped: Sequence[SkippedSource]) -> ResolutionError:
    if not skipped:
        return error
    message = ", ".join(f"{source.reference.resolver} ({source.error.reason})" for source in skipped)
    return error.with_message(f"{error.message} (failed before: {message})")
