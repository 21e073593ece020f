"""Objects, lists and watch events in the form that was asked for: whole, metadata only, or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from konverge.kube import Object
from konverge.localcluster.listing import Page
from konverge.localcluster.media import Form
from konverge.localcluster.resources import Resource
from konverge.localcluster.storage import Stored
from konverge.localcluster.tables import columns_of, row_of
from konverge.localcluster.watching import Event

__all__ = ["Renderer"]

_META = "meta.k8s.io/v1"

_encode = msgspec.json.Encoder().encode


@dataclass
class Renderer:
    """Renders for one request.

    Attributes:
        resource: What is rendered.
        form: In which form.
        now: The present, for ages in tables.
        include_object: What the rows of a table carry: ``None``, ``Metadata`` or ``Object``.
    """

    resource: Resource
    form: Form
    now: datetime
    include_object: str = "Metadata"
    _told_columns: bool = False

    def object(self, obj: Object) -> bytes:
        """One object, in the form that its resource serves."""
        match self.form:
            case "object":
                return _encode(obj)
            case "metadata":
                return _encode(_metadata_of(obj))
            case "table":
                version = obj["metadata"].get("resourceVersion", "")
                return _encode(self._table([obj], {"resourceVersion": version}))

    def page(self, page: Page) -> bytes:
        """One page of a list."""
        metadata: Object = {"resourceVersion": str(page.revision)}
        if page.next or (self.resource.is_custom and self.form == "object"):
            metadata["continue"] = page.next
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        match self.form:
            case "table":
                return _encode(self._table([self._served(stored) for stored in page.items], metadata))
            case "metadata":
                head = {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata}
                return _list(head, [stored.encoded_metadata for stored in page.items])
            case "object":
                gvk = self.resource.gvk
                head = {"kind": self.resource.list_kind, "apiVersion": gvk.api_version, "metadata": metadata}
                return _list(head, [self._item(stored) for stored in page.items])

    def event(self, event: Event) -> bytes:
        """One event of a watch, as a line."""
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), self._event_object(event))

    def _event_object(self, event: Event) -> bytes:
        if event.type == "ERROR":
            return _encode(event.object)
        stored = event.stored
        match self.form:
            case "object":
                if stored is None:
                    return _encode(event.object)
                return stored.encoded if self.resource.conversion is None else _encode(self._served(stored))
            case "metadata":
                return stored.encoded_metadata if stored is not None else _encode(_metadata_of(event.object))
            case "table":
                return self._table_event(event)

    def _table_event(self, event: Event) -> bytes:
        version = event.object["metadata"]["resourceVersion"]
        if event.type == "BOOKMARK":
            blank = [None] * len(columns_of(self.resource))
            rows = [{"cells": ["", *blank[1:]], "object": _metadata_of(event.object)}]
        else:
            rows = [self._row(event.object if event.stored is None else self._served(event.stored))]
        table = self._table_of(rows, {"resourceVersion": version})
        if self._told_columns:
            # A watch tells its columns once.
            table["columnDefinitions"] = None
        self._told_columns = True
        return _encode(table)

    def _table(self, objects: Sequence[Object], metadata: Object) -> Object:
        return self._table_of([self._row(obj) for obj in objects], metadata)

    def _table_of(self, rows: list[Object], metadata: Object) -> Object:
        columns = columns_of(self.resource)
        return {"kind": "Table", "apiVersion": _META, "metadata": metadata, "columnDefinitions": columns, "rows": rows}

    def _row(self, obj: Object) -> Object:
        carried: Any = None
        if self.include_object == "Object":
            carried = obj
        elif self.include_object != "None":
            carried = _metadata_of(obj)
        return {"cells": row_of(self.resource, obj, self.now), "object": carried}

    def _served(self, stored: Stored) -> Object:
        form = stored.forms.get(self.resource.gvk.api_version)
        return self.resource.served(stored.object) if form is None else form

    def _item(self, stored: Stored) -> bytes:
        """An object in a list. Those of built-in kinds leave out what the list's head says of all."""
        if self.resource.is_custom:
            return stored.encoded if self.resource.conversion is None else _encode(self._served(stored))
        if self.resource.conversion is None:
            return stored.encoded_item
        served = self._served(stored)
        return _encode({name: value for name, value in served.items() if name not in ("kind", "apiVersion")})


def _metadata_of(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def _list(head: Object, items: Sequence[bytes]) -> bytes:
    return b'%b,"items":[%b]}' % (_encode(head)[:-1], b",".join(items))
