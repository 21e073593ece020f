"""The comparison of a write by the real API server with the same write by this package."""

from __future__ import annotations

import copy
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from konverge._internal.apply import (
    FieldSet,
    Schema,
    find_builtin_schema,
    server_side_apply,
    to_stored_form,
    track_update,
)
from konverge._internal.apply.reset_fields import find_reset_fields
from konverge._internal.apply.typed_values import is_same_value
from konverge.clock import SystemClock
from konverge.errors import ApiError, InvalidError
from konverge.kube import GroupVersionKind, Object, parse_time

_TRIES = 50


class ServerComparison:
    """One object that each write changes on the real server and through this package.

    Args:
        url: The server.
        token: An administrator's bearer token.
        path: The URL path of the object; objects that are written get its name if they have none.
        schema: The schema of the kind; None for a built-in kind.
    """

    def __init__(self, url: str, token: str, path: str, schema: Schema | None = None) -> None:
        self._url = url
        self._token = token
        self._path = path
        self._schema = schema

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Send a request and return the decoded response.

        Raises:
            konverge.errors.ApiError: The server rejected the request.
        """
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": content_type, "User-Agent": "twin/1"},
        )
        context = ssl._create_unverified_context()  # loopback, and a certificate that the server made for itself
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            body = error.read()
            status = json.loads(body) if body.startswith(b"{") else {"message": body.decode()}
            raise ApiError.from_status(error.code, status) from None

    def live(self) -> Object | None:
        try:
            found: Object = self.request("GET", self._path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return found

    def apply(self, manager: str, applied: Object, *, force: bool = False, subresource: str = "") -> Object:
        """Apply on both sides, check that they agree, and return the object."""
        applied = self._with_name(applied)
        query = f"?fieldManager={manager}&force={json.dumps(force)}"

        def really(body: Object) -> Object:
            path = self._path + (f"/{subresource}" if subresource else "")
            answer: Object = self.request("PATCH", path + query, body, "application/apply-patch+yaml")
            return answer

        def ours(live: Object | None, now: datetime) -> Object:
            merged = server_side_apply(
                live,
                _with_resource_version(applied, live),
                self._schema_of(applied),
                manager=manager,
                force=force,
                now=now,
                subresource=subresource,
            )
            return _reset(merged, live, subresource)

        return self._write_both(applied, really, ours)

    def patch(self, manager: str, patch: Object, *, subresource: str = "") -> Object:
        """Merge-patch on both sides, check that they agree, and return the object."""
        query = f"?fieldManager={manager}"

        def really(body: Object) -> Object:
            path = self._path + (f"/{subresource}" if subresource else "")
            answer: Object = self.request("PATCH", path + query, body, "application/merge-patch+json")
            return answer

        def ours(live: Object | None, now: datetime) -> Object:
            assert live is not None
            schema = self._schema_of(live)
            new = _reset(to_stored_form(_apply_merge_patch(live, patch), schema), live, subresource)
            return track_update(live, new, schema, manager=manager, now=now, subresource=subresource)

        return self._write_both(patch, really, ours)

    def create(self, manager: str, obj: Object) -> Object:
        """Create on both sides, check that they agree, and return the object."""
        obj = self._with_name(obj)

        def really(body: Object) -> Object:
            collection = self._path.rpartition("/")[0]
            answer: Object = self.request("POST", f"{collection}?fieldManager={manager}", body)
            return answer

        def ours(live: Object | None, now: datetime) -> Object:
            assert live is None
            schema = self._schema_of(obj)
            return track_update(None, to_stored_form(obj, schema), schema, manager=manager, now=now)

        return self._write_both(obj, really, ours)

    def _with_name(self, obj: Object) -> Object:
        return {**obj, "metadata": {"name": self._path.rpartition("/")[2], **(obj.get("metadata") or {})}}

    def _schema_of(self, obj: Object) -> Schema:
        schema = self._schema or find_builtin_schema(GroupVersionKind.of(obj))
        assert schema is not None
        return schema

    def _write_both(
        self, body: Object, really: Callable[[Object], Object], ours: Callable[[Object | None, datetime], Object]
    ) -> Object:
        for _ in range(_TRIES):
            before = self.live()
            try:
                answer = really(_with_resource_version(body, before))
            except ApiError as error:
                if "the object has been modified" in error.message:
                    continue  # A controller wrote between our two requests.
                self._check_refusal(error, before, ours)
                raise
            self._check(before, answer, ours(copy.deepcopy(before), _read_write_time(answer)))
            return answer
        raise AssertionError("controllers never left the object alone")

    def _check_refusal(
        self, error: ApiError, before: Object | None, ours: Callable[[Object | None, datetime], Object]
    ) -> None:
        if isinstance(error, InvalidError):
            return  # Validation is not this package's.
        with pytest.raises(ApiError) as own:
            ours(copy.deepcopy(before), SystemClock().now())
        assert own.value.code == error.code
        assert own.value.message == error.message
        assert set(own.value.causes) == set(error.causes)  # The server sorts them by manager in the message alone.

    def _check(self, before: Object | None, answer: Object, own: Object) -> None:
        assert _normalize_managed_fields(own) == _normalize_managed_fields(answer)
        assert _content(own) == _content(answer, only=_content(own) if before is None else None)
        if before is not None:
            same_version = before["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"]
            assert same_version == is_same_value(own, before)


def _read_write_time(answer: Object) -> datetime:
    """Read the time of the server's write for the other side; the order of managedFields depends on it."""
    times = [entry["time"] for entry in answer["metadata"].get("managedFields", ()) if "time" in entry]
    return parse_time(max(times)) if times else SystemClock().now()


def _with_resource_version(body: Object, before: Object | None) -> Object:
    if before is None:
        return body
    version = {"resourceVersion": before["metadata"]["resourceVersion"]}
    return {**body, "metadata": {**(body.get("metadata") or {}), **version}}


def _normalize_managed_fields(obj: Object) -> Any:
    """Normalize managedFields: of the times, keep only their presence."""
    return sorted(
        (
            entry["operation"],
            entry["manager"],
            entry.get("subresource", ""),
            entry["apiVersion"],
            "time" in entry,
            json.dumps(entry["fieldsV1"], sort_keys=True),
        )
        for entry in obj["metadata"].get("managedFields", ())
    )


_IDENTITY = ("creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion", "uid")


def _content(obj: Object, only: Any = None) -> Any:
    """Return the comparable part of the object; on create only the fields that both sides have."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _IDENTITY}
    content = {**obj, "metadata": metadata}
    return content if only is None else _keep_known_fields(content, only)


def _keep_known_fields(value: Any, like: Any) -> Any:
    if isinstance(value, dict) and isinstance(like, dict):
        return {name: _keep_known_fields(each, like[name]) for name, each in value.items() if name in like}
    return value


def _reset(new: Object, live: Object | None, subresource: str) -> Object:
    """Reset the fields that an endpoint does not write, like the server."""
    if live is None:
        return new
    fields = find_reset_fields(GroupVersionKind.of(new), subresource)
    return _restore_fields(new, live, fields) if fields else new


def _restore_fields(new: Any, live: Any, fields: FieldSet) -> Any:
    kept = dict(new)
    for element, below in fields.children.items():
        name = element.removeprefix("f:")
        if name == "metadata" and below.owned:
            kept["metadata"] = {**live["metadata"], "managedFields": new["metadata"].get("managedFields", [])}
        elif not below.owned:
            kept[name] = _restore_fields(new.get(name) or {}, live.get(name) or {}, below)
        elif name in live:
            kept[name] = live[name]
        else:
            kept.pop(name, None)
    return kept


def _apply_merge_patch(live: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _apply_merge_patch(merged.get(name), value)
    return merged
