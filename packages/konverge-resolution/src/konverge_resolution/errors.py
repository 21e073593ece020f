"""The one error that a resolution ends with."""

from __future__ import annotations

from konverge.errors import KonvergeError
from konverge_resolution.reasons import REASON_TRAITS, Reason, ReasonTraits

__all__ = ["ResolutionError"]


class ResolutionError(KonvergeError):
    """There is no result.

    Args:
        reason: Which of the closed set of reasons.
        message: One sentence: what was expected, what was found, where, and what to do. It is shown to whoever may read
            the request, so it has no credential, no name of a Secret and no address that the user did not give.
        retry_after_seconds: How long the remote asks to be left alone; None when it does not say.
        field_path: Of what a definition refers to, the field that does; empty for what was asked for by itself.
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
        """What holds for all failures of this reason."""
        return REASON_TRAITS[self.reason]

    def with_message(self, message: str) -> ResolutionError:
        """The same failure in other words.

        Args:
            message: The words.
        """
        return ResolutionError(
            self.reason, message, retry_after_seconds=self.retry_after_seconds, field_path=self.field_path
        )
