"""A parsed request: its target, its user, and the form of its response."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.content_negotiation import negotiate_form
from konverge_cluster._internal.embedded.messages import ServerRequest
from konverge_cluster._internal.embedded.response_renderer import ResponseRenderer
from konverge_cluster._internal.embedded.routes import RequestTarget

__all__ = ["ParsedRequest"]


class ParsedRequest(NamedTuple):
    """A parsed request with its user.

    Attributes:
        target: The resource and object of the path.
        request: The original request.
        user: The user who sends the request.
        warnings: Receives the warnings for the response.
    """

    target: RequestTarget
    request: ServerRequest
    user: User
    warnings: list[str]

    def build_renderer(self, now: datetime, *, is_list: bool = False, is_watch: bool = False) -> ResponseRenderer:
        """Return the renderer for the form that the client accepts.

        Args:
            now: The current time, for ages in tables.
            is_list: True for a list.
            is_watch: True for a watch, whose events can contain objects and lists.

        Raises:
            ApiError: 406: the server cannot render an accepted form.
        """
        accepted, gvk = self.request.headers.get("accept", ""), self.target.resource.gvk
        kind = f"{gvk.group.partition('.')[0] or 'core'}.{gvk.kind}"
        if is_list:
            why = f"the requested object is a list (*{kind}List)"
            form = negotiate_form(accepted, unfit="PartialObjectMetadata", why=why)
        else:
            why = f"the requested object is not a list (*{kind})"
            form = negotiate_form(accepted, unfit="" if is_watch else "PartialObjectMetadataList", why=why)
        included = self.request.query.get("includeObject", "Metadata")
        return ResponseRenderer(self.target.resource, form, now, included)
