"""The namespaces that are being deleted, as the reconciles of one owner found them. Pure.

A namespace that is being deleted refuses every new object and never leaves this state, so a retry is useless. One
refusal is enough for an owner, however many of its objects are deleted meanwhile and enqueue it.
"""

from __future__ import annotations

from datetime import timedelta

from konverge.errors import ApiError

__all__ = ["TerminatingNamespaces"]

_RETRY_AFTER = timedelta(seconds=30)


class TerminatingNamespaces:
    """The namespaces that refused an object of an owner because they are being deleted.

    Args:
        owner_uid: The UID of the owner.
        owner_namespace: The namespace of the owner, which it does not outlive; empty for a cluster-scoped owner.
    """

    def __init__(self, owner_uid: str, owner_namespace: str) -> None:
        self.owner_uid = owner_uid
        self._owner_namespace = owner_namespace
        self._refusals: dict[str, tuple[ApiError, float]] = {}
        self.was_hit: bool = False
        """Whether a create was refused, by the server or from memory, since this was last set to False."""

    @property
    def is_empty(self) -> bool:
        """True if no terminating namespace is recorded."""
        return not self._refusals

    def record_refusal(self, namespace: str, refusal: ApiError, now: float) -> None:
        """Record that the server refused to create an object in the namespace, if the refusal is due to the deletion.

        Args:
            namespace: The namespace.
            refusal: The error that the server returned.
            now: The present time, in seconds.
        """
        if refusal.is_namespace_terminating:
            self.was_hit = True
            self._refusals[namespace] = refusal, now

    def check(self, namespace: str, now: float) -> None:
        """Raise the earlier refusal if the namespace is known to be terminating.

        The owner's own namespace stays recorded for the owner's life. Another namespace may be deleted and created
        again, so its record expires.

        Raises:
            konverge.errors.ApiError: The first refusal of the server.
        """
        record = self._refusals.get(namespace)
        if record is None:
            return
        refusal, since = record
        if namespace != self._owner_namespace and now >= since + _RETRY_AFTER.total_seconds():
            del self._refusals[namespace]
            return
        self.was_hit = True
        raise refusal

    def compute_requeue_after(self, now: float) -> timedelta | None:
        """Return the time after which another reconcile may find a namespace created again; None if it need not look.

        Args:
            now: The present time, in seconds.
        """
        since = [since for name, (_, since) in self._refusals.items() if name != self._owner_namespace]
        if not since:
            return None
        return max(timedelta(0), timedelta(seconds=min(since) - now) + _RETRY_AFTER)
