"""Events about the state of owners: failed reconciles, Degraded and Down components, and their recovery.

The engine records its writes (`konverge.component.EventRecorder`), but no failures or waits. A user of
``kubectl describe`` looks for Warning events first, so the operator adds them: one series for each repeated failure,
and one event for each important change of a condition. Without a change, no event is recorded (invariant 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge._internal.component import ConditionReason
from konverge._internal.kube import Condition, Object, is_deleting
from konverge.errors import ConflictError, ConnectionFailedError, format_error, iter_causes

if TYPE_CHECKING:
    from konverge._internal.runtime.event_recorder import ClusterEventRecorder

__all__ = ["OwnerEventReporter", "is_caused_only_by", "is_expected_to_pass"]

_GRADED = frozenset({ConditionReason.DEGRADED.value, ConditionReason.DOWN.value})
_FAILED = frozenset({ConditionReason.ERROR.value, ConditionReason.FEATURE_GATE_ERROR.value})
# A conflict means that a cache was behind: the next reconcile is expected to succeed.
_EXPECTED_CONFLICTS = 2


class OwnerEventReporter:
    """A reporter that records events on owners.

    Args:
        events: The recorder.
    """

    def __init__(self, events: ClusterEventRecorder) -> None:
        self._events = events

    def report_failure(self, owner: Object, error: BaseException, times: int) -> bool:
        """Record that a reconcile of the owner failed; return False for a failure without an event.

        An unreachable server is not a failure of the owner, and a first conflict is expected to go away.

        Args:
            owner: The owner.
            error: The error.
            times: The number of failures in a row.
        """
        if is_expected_to_pass(error, times):
            return False
        if is_deleting(owner):
            reason, action = "DeletionFailed", "Delete"
        else:
            reason, action = "ReconcileFailed", "Reconcile"
        self._events.warning(owner, reason=reason, message=format_error(error), action=action)
        return True

    def report_recovery(self, owner: Object) -> None:
        """Record that a reconcile has succeeded after a reported failure."""
        message = "The reconcile succeeds again."
        self._events.event(owner, reason="Recovered", message=message, action="Reconcile")

    def report_condition(self, owner: Object, condition: Condition, earlier: str, *, has_failed: bool) -> None:
        """Record that a condition has become Degraded or Down, or has recovered.

        Args:
            owner: The owner.
            condition: The condition, whose reason has changed.
            earlier: Its reason at the beginning of the reconcile; empty for none.
            has_failed: True if the reconcile failed, which `report_failure` reports. Otherwise this method reports an
                error in the condition.
        """
        bad = _GRADED if has_failed else _GRADED | _FAILED
        if condition.reason in bad:
            message = f"{condition.type} is {condition.reason}: {condition.message}"
            self._events.warning(owner, reason=condition.reason, message=message, action="Reconcile")
        elif earlier in _GRADED and condition.reason not in _GRADED | _FAILED:
            reason = "Recovered" if condition.status == "True" else "Recovering"
            message = f"{condition.type} was {earlier} and is {condition.reason} now: {condition.message}"
            self._events.event(owner, reason=reason, message=message, action="Reconcile")

    def report_deletion(self, owner: Object, message: str, *, is_new: bool, is_stuck: bool) -> None:
        """Record the start of a deletion, and repeatedly a deletion that takes too long."""
        if is_stuck:
            self._events.warning(owner, reason="DeletionStuck", message=message, action="Delete")
        elif is_new:
            self._events.event(owner, reason="Deleting", message=message, action="Delete")


def is_expected_to_pass(error: BaseException, times: int) -> bool:
    """Return True for a failure that is no event: an unreachable server, and the first conflicts in a row."""
    if is_caused_only_by(error, ConnectionFailedError):
        return True
    return times <= _EXPECTED_CONFLICTS and is_caused_only_by(error, ConflictError)


def is_caused_only_by(error: BaseException, kind: type[BaseException]) -> bool:
    """Return True if the error, or each error of a group, has a cause of that class."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_caused_only_by(member, kind) for member in error.exceptions)
    return any(isinstance(cause, kind) for cause in iter_causes(error))
