"""Conversion webhooks of custom resources (apiextensions.k8s.io/v1 ``ConversionReview``).

Stored objects have the storage version. The webhook returns every other version. It must keep the identity of an
object, and can change only labels and annotations in its metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from konverge._internal.apply import with_schema_defaults
from konverge._internal.kube import GroupVersionKind, Object
from konverge.clock import Entropy
from konverge.errors import ApiError
from konverge_cluster._internal.embedded.pruning import prune
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage import StoredObject
from konverge_cluster._internal.embedded.storage_conversion import WebhookConversion
from konverge_cluster._internal.embedded.validation.field_errors import quote
from konverge_cluster._internal.embedded.validation.metadata import validate_annotations, validate_labels
from konverge_cluster._internal.embedded.webhooks.client_config import (
    CallFailedError,
    FindService,
    build_call,
    parse_review,
)
from konverge_cluster._internal.embedded.webhooks.pending_calls import CallGenerator, WebhookCall, WebhookReply

__all__ = ["WebhookConverter"]

_API_VERSION = "apiextensions.k8s.io/v1"
_KIND = "ConversionReview"
_TIMEOUT_SECONDS = 30
_SUCCESS = "Success"


class WebhookConverter:
    """Converts objects to a version, with a webhook if necessary.

    Args:
        entropy: The source of review UIDs.
        find_service: Returns the Services that definitions name.
    """

    def __init__(self, entropy: Entropy, find_service: FindService) -> None:
        self._entropy = entropy
        self._find_service = find_service

    def to_served(self, resource: ServedResource, obj: Object) -> CallGenerator[Object]:
        """Return a stored object in the served form. It must not be changed: it can be the stored object itself.

        Raises:
            ApiError: The conversion by the webhook failed.
        """
        if not isinstance(resource.conversion, WebhookConversion):
            return resource.to_served(obj)
        (form,) = yield from self._convert_through_webhook(
            resource.conversion, [obj], resource.gvk.api_version, resource
        )
        return form

    def to_stored(self, resource: ServedResource, obj: Object) -> CallGenerator[Object]:
        """Return a served object in the stored form.

        Raises:
            ApiError: The conversion by the webhook failed.
        """
        conversion = resource.conversion
        if not isinstance(conversion, WebhookConversion):
            return resource.to_stored(obj)
        (form,) = yield from self._convert_through_webhook(conversion, [obj], conversion.stored, None)
        return form

    def convert(
        self, objects: Sequence[Object], source: ServedResource, target: ServedResource
    ) -> CallGenerator[list[Object]]:
        """Return objects of one served version in another version.

        Raises:
            ApiError: The conversion by the webhook failed.
        """
        if source.gvk == target.gvk:
            return list(objects)
        if not isinstance(target.conversion, WebhookConversion):
            return [target.to_served(source.to_stored(obj)) for obj in objects]
        return (yield from self._convert_through_webhook(target.conversion, objects, target.gvk.api_version, target))

    def prepare_served_forms(self, resource: ServedResource, items: Iterable[StoredObject]) -> CallGenerator[None]:
        """Add the converted form to stored objects before they are rendered.

        Each object is converted once, as in the watch cache of the real server.

        Raises:
            ApiError: The conversion by the webhook failed.
        """
        conversion, version = resource.conversion, resource.gvk.api_version
        if not isinstance(conversion, WebhookConversion):
            return
        lacking = [stored for stored in items if version not in stored.forms]
        forms = yield from self._convert_through_webhook(
            conversion, [stored.object for stored in lacking], version, resource
        )
        for stored, form in zip(lacking, forms, strict=True):
            stored.forms[version] = form

    def _convert_through_webhook(
        self, conversion: WebhookConversion, objects: Sequence[Object], version: str, target: ServedResource | None
    ) -> CallGenerator[list[Object]]:
        """Return the objects in that version; only objects of other versions are sent to the webhook."""
        others = [obj for obj in objects if obj["apiVersion"] != version]
        if not others:
            return list(objects)
        uid = self._entropy.uid()
        request = {"uid": uid, "desiredAPIVersion": version, "objects": others}
        review = {"kind": _KIND, "apiVersion": _API_VERSION, "request": request}
        call = build_call(conversion.client_config, review, _TIMEOUT_SECONDS, self._find_service)
        (reply,) = yield (call,)
        what = f"conversion webhook for {_describe_object(others[0])}"
        try:
            forms = iter(
                [_coerce_object(form, target) for form in _parse_converted_objects(call, reply, uid, others, version)]
            )
        except CallFailedError as error:
            raise ApiError(f"{what} {error}", reason="", code=500) from None
        return [obj if obj["apiVersion"] == version else next(forms) for obj in objects]


def _describe_object(obj: Object) -> str:
    gvk = GroupVersionKind.of(obj)
    return f"{gvk.api_version}, Kind={gvk.kind}"


def _coerce_object(obj: Object, target: ServedResource | None) -> Object:
    if target is None:
        return obj
    form: Object = with_schema_defaults(obj, target.schema)
    form["metadata"] = obj["metadata"]
    prune(form, target.schema)
    return form


def _parse_converted_objects(
    call: WebhookCall, reply: WebhookReply, uid: str, originals: Sequence[Object], version: str
) -> list[Object]:
    try:
        response = _find_response(parse_review(call, reply), uid)
    except CallFailedError as error:
        raise CallFailedError(f"failed: {error}") from None
    forms = response.get("convertedObjects") or []
    if not isinstance(forms, list) or len(forms) != len(originals):
        found = len(forms) if isinstance(forms, list) else 0
        raise CallFailedError(f"returned {found} objects, expected {len(originals)}")
    return [
        _check_converted_object(index, before, form, version)
        for index, (before, form) in enumerate(zip(originals, forms, strict=True))
    ]


def _find_response(review: Mapping[str, Any], uid: str) -> Mapping[str, Any]:
    version, kind = str(review.get("apiVersion", "")), str(review.get("kind", ""))
    if (version, kind) != (_API_VERSION, _KIND):
        group, _, short = version.rpartition("/")
        if kind == _KIND and group == _API_VERSION.partition("/")[0]:
            raise CallFailedError(f"converting ({short}.{kind}) to (v1.{_KIND}): unknown conversion")
        expected = f"{_API_VERSION}, Kind={_KIND}"
        raise CallFailedError(f"expected webhook response of {expected}, got {group}/{short}, Kind={kind}")
    response = review.get("response")
    if not isinstance(response, Mapping):
        raise CallFailedError("no response provided")
    if response.get("uid") != uid:
        message = f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid', '')))}"
        raise CallFailedError(message)
    result = response.get("result")
    result = result if isinstance(result, Mapping) else {}
    status = result.get("status", "")
    if status != _SUCCESS:
        raise CallFailedError(str(result.get("message") or f"response.result.status was '{status}', not '{_SUCCESS}'"))
    return response


def _check_converted_object(index: int, before: Object, form: Any, version: str) -> Object:
    """Return a converted object with the metadata that it must keep."""
    what = f"returned invalid object at index {index}"
    if not isinstance(form, dict) or not isinstance(form.get("metadata"), dict):
        raise CallFailedError(f"{what}: it has no metadata")
    if form.get("kind") != before["kind"]:
        raise CallFailedError(f"{what}: invalid kind (expected {before['kind']}, received {form.get('kind', '')})")
    if form.get("apiVersion") != version:
        found = form.get("apiVersion", "")
        raise CallFailedError(f"{what}: invalid groupVersion (expected {version}, received {found})")
    old, new = before["metadata"], form["metadata"]
    for field, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        was, now = old.get(field, ""), new.get(field, "")
        if was != now:
            raise CallFailedError(f"returned invalid object: must have the same {name}: {was} != {now}")
    labels, annotations = new.get("labels") or {}, new.get("annotations") or {}
    errors = [
        *validate_labels(labels, "metadata.labels"),
        *validate_annotations(annotations, "metadata.annotations"),
    ]
    if errors:
        raise CallFailedError(f"returned invalid metadata: {errors[0]}")
    metadata = {name: value for name, value in old.items() if name not in ("labels", "annotations")}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return {**form, "metadata": metadata}
