"""Rendering of objects, lists and watch events in the requested form: complete, metadata only, or a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.content_negotiation import Form
from konverge_cluster._internal.embedded.list_pages import ListPage
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.server_watch import ServerWatchEvent
from konverge_cluster._internal.embedded.storage import StoredObject
from konverge_cluster._internal.embedded.tables import build_row, list_columns

__all__ = ["ResponseRenderer"]

_META = "meta.k8s.io/v1"

_encode = msgspec.json.Encoder().encode


@dataclass
class ResponseRenderer:
    """The renderer for one request.

    Attributes:
        resource: The resource of the objects.
        form: The requested form.
        now: The current time, for ages in tables.
        include_object: The content of table rows: ``None``, ``Metadata`` or ``Object``.
    """

    resource: ServedResource
    form: Form
    now: datetime
    include_object: str = "Metadata"
    _has_sent_columns: bool = False

    def render_object(self, obj: Object) -> bytes:
        """Render one object, given in the served form."""
        match self.form:
            case "object":
                return _encode(obj)
            case "metadata":
                return _encode(_to_partial_metadata(obj))
            case "table":
                version = obj["metadata"].get("resourceVersion", "")
                return _encode(self._build_table([obj], {"resourceVersion": version}))

    def render_page(self, page: ListPage) -> bytes:
        """Render one page of a list."""
        metadata: Object = {"resourceVersion": str(page.revision)}
        if page.next or (self.resource.is_custom and self.form == "object"):
            metadata["continue"] = page.next
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        match self.form:
            case "table":
                return _encode(self._build_table([self._to_served(stored) for stored in page.items], metadata))
            case "metadata":
                head = {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata}
                return _render_list(head, [stored.encoded_metadata for stored in page.items])
            case "object":
                gvk = self.resource.gvk
                head = {"kind": self.resource.list_kind, "apiVersion": gvk.api_version, "metadata": metadata}
                return _render_list(head, [self._render_item(stored) for stored in page.items])

    def render_event(self, event: ServerWatchEvent) -> bytes:
        """Render one watch event as a line."""
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), self._render_event_object(event))

    def _render_event_object(self, event: ServerWatchEvent) -> bytes:
        if event.type == "ERROR":
            return _encode(event.object)
        stored = event.stored
        match self.form:
            case "object":
                if stored is None:
                    return _encode(event.object)
                return stored.encoded if self.resource.conversion is None else _encode(self._to_served(stored))
            case "metadata":
                return stored.encoded_metadata if stored is not None else _encode(_to_partial_metadata(event.object))
            case "table":
                return self._render_table_event(event)

    def _render_table_event(self, event: ServerWatchEvent) -> bytes:
        version = event.object["metadata"]["resourceVersion"]
        if event.type == "BOOKMARK":
            blank = [None] * len(list_columns(self.resource))
            rows = [{"cells": ["", *blank[1:]], "object": _to_partial_metadata(event.object)}]
        else:
            rows = [self._build_row(event.object if event.stored is None else self._to_served(event.stored))]
        table = self._wrap_rows(rows, {"resourceVersion": version})
        if self._has_sent_columns:
            # Only the first event of a watch contains the columns.
            table["columnDefinitions"] = None
        self._has_sent_columns = True
        return _encode(table)

    def _build_table(self, objects: Sequence[Object], metadata: Object) -> Object:
        return self._wrap_rows([self._build_row(obj) for obj in objects], metadata)

    def _wrap_rows(self, rows: list[Object], metadata: Object) -> Object:
        columns = list_columns(self.resource)
        return {"kind": "Table", "apiVersion": _META, "metadata": metadata, "columnDefinitions": columns, "rows": rows}

    def _build_row(self, obj: Object) -> Object:
        carried: Any = None
        if self.include_object == "Object":
            carried = obj
        elif self.include_object != "None":
            carried = _to_partial_metadata(obj)
        return {"cells": build_row(self.resource, obj, self.now), "object": carried}

    def _to_served(self, stored: StoredObject) -> Object:
        form = stored.forms.get(self.resource.gvk.api_version)
        return self.resource.to_served(stored.object) if form is None else form

    def _render_item(self, stored: StoredObject) -> bytes:
        """Render an object in a list. Built-in kinds omit the kind and apiVersion, which the list contains."""
        if self.resource.is_custom:
            return stored.encoded if self.resource.conversion is None else _encode(self._to_served(stored))
        if self.resource.conversion is None:
            return stored.encoded_item
        served = self._to_served(stored)
        return _encode({name: value for name, value in served.items() if name not in ("kind", "apiVersion")})


def _to_partial_metadata(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def _render_list(head: Object, items: Sequence[bytes]) -> bytes:
    return b'%b,"items":[%b]}' % (_encode(head)[:-1], b",".join(items))
