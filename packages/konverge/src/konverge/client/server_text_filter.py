"""What a client passes on of a server's words: nothing that may repeat the value of a Secret.

Each error and each warning comes through here before anybody sees it, so that conditions, events, logs, metrics, traces
and the command line need not know of it.
"""

from __future__ import annotations

from typing import Any

from konverge.errors import ApiError
from konverge.kube import Object
from konverge.kube.secret_redaction import holds_secret
from konverge.kube.secret_values import SecretValues
from konverge.kube.server_text_redaction import (
    hide_values,
    hide_values_in_text,
    is_secret_path,
    is_withholding,
    iter_texts,
    withhold_text,
    withhold_warning,
)

__all__ = ["ServerTextFilter"]


class ServerTextFilter:
    """Filters the words of one server.

    Attributes:
        values: The values of the Secrets that went through the client.
    """

    def __init__(self) -> None:
        self.values = SecretValues()

    def remember_values(self, path: str, body: Any) -> None:
        """Remember the values of a Secret that is sent, whole or as a patch."""
        if body is not None and is_secret_path(path):
            changed = body if isinstance(body, dict) else {"stringData": dict(enumerate(iter_texts(body)))}
            self.values.add({**changed, "apiVersion": "v1", "kind": "Secret"})

    def filter_error(self, error: ApiError, path: str, body: Any = None) -> ApiError:
        """The error as it may be shown.

        Args:
            error: What the server answered.
            path: The path of the request.
            body: What the request sent.
        """
        if is_withholding() or is_secret_path(path) or holds_secret(body):
            return withhold_text(error, sent=body, path=path, values=self.values)
        return hide_values(error, self.values, sent=body, path=path)

    def redact_values(self, error: ApiError, path: str, body: Any = None) -> ApiError:
        """The error without known values alone: of one that is not about what was sent, but about who sends."""
        return hide_values(error, self.values, sent=body, path=path)

    def filter_warning(self, text: str, path: str, body: Any = None) -> str:
        """The text of a warning as it may be shown; the arguments are those of `filter_error`."""
        if is_withholding() or is_secret_path(path) or holds_secret(body):
            return withhold_warning(text, sent=body, path=path, values=self.values)
        return hide_values_in_text(text, self.values, sent=body, path=path)

    def remember_object(self, obj: Object) -> Object:
        """Remember the values of an object that was read, if it is a Secret; returns the object."""
        self.values.add(obj)
        return obj
