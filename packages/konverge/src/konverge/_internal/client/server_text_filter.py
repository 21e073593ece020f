"""The filter for a server's texts: it removes everything that may contain the value of a Secret.

Each error and each warning passes through it first, so that conditions, events, logs, metrics, traces and the command
line need no redaction of their own.
"""

from __future__ import annotations

from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.secret_redaction import holds_secret
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.kube.server_text_redaction import (
    hide_values,
    hide_values_in_text,
    is_secret_path,
    is_withholding,
    iter_texts,
    withhold_text,
    withhold_warning,
)
from konverge.errors import ApiError

__all__ = ["ServerTextFilter"]


class ServerTextFilter:
    """The filter for the texts of one server.

    Attributes:
        values: The values of the Secrets that passed through the client.
    """

    def __init__(self) -> None:
        self.values: SecretValues = SecretValues()

    def remember_values(self, path: str, body: Any) -> None:
        """Remember the values of a Secret that is sent, whole or as a patch."""
        if body is not None and is_secret_path(path):
            changed = body if isinstance(body, dict) else {"stringData": dict(enumerate(iter_texts(body)))}
            self.values.add({**changed, "apiVersion": "v1", "kind": "Secret"})

    def filter_error(self, error: ApiError, path: str, body: Any = None) -> ApiError:
        """Return the error in a form that is safe to show.

        Args:
            error: The error of the server.
            path: The path of the request.
            body: The body of the request.
        """
        if is_withholding() or is_secret_path(path) or holds_secret(body):
            return withhold_text(error, sent=body, path=path, values=self.values)
        return hide_values(error, self.values, sent=body, path=path)

    def redact_values(self, error: ApiError, path: str, body: Any = None) -> ApiError:
        """Remove only known values from the error: it concerns the credentials, not the body."""
        return hide_values(error, self.values, sent=body, path=path)

    def filter_warning(self, text: str, path: str, body: Any = None) -> str:
        """Return the text of a warning in a form that is safe to show; the arguments are those of `filter_error`."""
        if is_withholding() or is_secret_path(path) or holds_secret(body):
            return withhold_warning(text, sent=body, path=path, values=self.values)
        return hide_values_in_text(text, self.values, sent=body, path=path)

    def remember_object(self, obj: Object) -> Object:
        """Remember the values of an object that was read, if it is a Secret; return the object."""
        self.values.add(obj)
        return obj
