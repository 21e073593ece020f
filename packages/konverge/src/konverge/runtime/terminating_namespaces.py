"""What the passes over one owner know of namespaces that are being deleted. Pure.

A namespace that is being deleted refuses whatever is new in it, and never takes that back. To ask again is in vain: one
refusal is enough for an owner, however many of its objects go away meanwhile and wake it.
"""

from __future__ import annotations

from datetime import timedelta

from konverge.errors import ApiError

__all__ = ["TerminatingNamespaces"]

_RETRY_AFTER = timedelta(seconds=30)


class TerminatingNamespaces:
    """The namespaces that have refused an object of an owner because they are being deleted.

    Args:
        owner_uid: The owner.
        owner_namespace: Its own namespace, which it does not outlive; empty for none.
    """

    def __init__(self, owner_uid: str, owner_namespace: str) -> None:
        self.owner_uid = owner_uid
        self._owner_namespace = owner_namespace
        self._refusals: dict[str, tuple[ApiError, float]] = {}
        self.was_hit = False
        """Whether something was refused, by the server or from memory, since this was last set to False."""

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is known of any namespace."""
        return not self._refusals

    def record_refusal(self, namespace: str, refusal: ApiError, now: float) -> None:
        """The server has refused to make something in the namespace; what it refuses for another reason is no matter.

        Args:
            namespace: The namespace.
            refusal: What the server said.
            now: The present time, in seconds.
        """
        if refusal.is_namespace_terminating:
            self.was_hit = True
            self._refusals[namespace] = refusal, now

    def check(self, namespace: str, now: float) -> None:
        """Refuse to make something in a namespace of which it is known that the server would refuse it.

        The owner's own namespace stays known for the owner's life. Another one may be gone and made anew: it counts as
        known for a while only.

        Raises:
            konverge.errors.ApiError: What the server said the first time.
        """
        known = self._refusals.get(namespace)
        if known is None:
            return
        refusal, since = known
        if namespace != self._owner_namespace and now >= since + _RETRY_AFTER.total_seconds():
            del self._refusals[namespace]
            return
        self.was_hit = True
        raise refusal

    def compute_requeue_after(self, now: float) -> timedelta | None:
        """After which time another pass may find a namespace made anew; None where it need not look.

        Args:
            now: The present time, in seconds.
        """
        since = [since for name, (_, since) in self._refusals.items() if name != self._owner_namespace]
        if not since:
            return None
        return max(timedelta(0), timedelta(seconds=min(since) - now) + _RETRY_AFTER)
