"""The one error class of a resolution."""

from __future__ import annotations

from konverge.errors import KonvergeError
from konverge_resolution._internal.reasons import REASON_TRAITS, Reason, ReasonTraits

__all__ = ["ResolutionError"]


class ResolutionError(KonvergeError):
    """Failure of a resolution.

    Args:
        reason: One of the closed set of reasons.
        message: One sentence with the object, the expected and the actual state, and the next step. All readers of the
            request can see it, so it contains no credential, no name of a Secret and no address that the user did not
            give.
        retry_after_seconds: Pause in seconds that the remote requests; None if it requests none.
        field_path: The field of a definition that has the reference; empty for a reference of a user.
    """

    def __init__(
        self, reason: Reason, message: str, *, retry_after_seconds: float | None = None, field_path: str = ""
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.field_path = field_path

    @property
    def traits(self) -> ReasonTraits:
        """The traits of all failures with this reason."""
        return REASON_TRAITS[self.reason]

    def with_message(self, message: str) -> ResolutionError:
        """Return the same failure with another message.

        Args:
            message: The new message.
        """
        return ResolutionError(
            self.reason, message, retry_after_seconds=self.retry_after_seconds, field_path=self.field_path
        )
