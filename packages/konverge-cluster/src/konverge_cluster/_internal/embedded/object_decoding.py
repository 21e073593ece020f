"""Conversion of request bodies to objects that the server can use: decoded, pruned, with defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from konverge._internal.apply import remove_meaningless_nulls, with_builtin_defaults, with_schema_defaults
from konverge._internal.kube import Object, ObjectKey
from konverge.errors import BadRequestError
from konverge_cluster._internal.embedded.pruning import prune
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.typed_decoding import decode_typed
from konverge_cluster._internal.embedded.validation.field_errors import field_invalid, format_value, new_invalid, quote

__all__ = ["IGNORED", "FieldValidation", "Strictness", "read_body", "read_object", "read_patch_result"]

Strictness: TypeAlias = Literal["Ignore", "Warn", "Strict"]

# The maximum number of reported fields; a body can have far more unknown fields.
_WARNINGS_LIMIT = 100


@dataclass(frozen=True, slots=True)
class FieldValidation:
    """The handling of unknown and duplicate fields (the ``fieldValidation`` of a request).

    Attributes:
        strictness: Ignore them, warn about them, or reject the request.
        duplicates: The paths of the keys that occur twice in the body.
        warnings: Receives the warnings.
    """

    strictness: Strictness = "Ignore"
    duplicates: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)

    def report_unknown(self, unknown: Sequence[str]) -> None:
        """Warn about unknown and duplicate fields, or reject the request.

        Raises:
            BadRequestError: The fields are rejected.
        """
        if self.strictness == "Ignore":
            return
        descriptions = [f"unknown field {quote(path)}" for path in unknown]
        descriptions += [f"duplicate field {quote(path)}" for path in self.duplicates]
        descriptions = list(dict.fromkeys(descriptions))[:_WARNINGS_LIMIT]
        if self.strictness == "Strict" and descriptions:
            raise BadRequestError(f"strict decoding error: {', '.join(descriptions)}")
        self.warnings.extend(descriptions)


IGNORED = FieldValidation()


def read_object(
    resource: ServedResource, value: Any, fields: FieldValidation = IGNORED, *, keeps_nulls: bool = False
) -> Object:
    """Return the object of that resource from a body; `value` is not changed.

    Args:
        resource: The resource of the object.
        value: The decoded body; apiVersion and kind can be absent.
        fields: The handling of unknown fields.
        keeps_nulls: Keep nulls in a custom resource, which validation rejects, as in the result of an apply.

    Raises:
        BadRequestError: The body is not such an object.
    """
    gvk = resource.gvk
    if not isinstance(value, dict):
        raise BadRequestError("expected a mapping")
    obj: Object = {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": {}}
    if resource.is_custom:
        return obj | _read_custom_resource(resource, value, fields, keeps_nulls=keeps_nulls)
    unknown: list[str] = []
    obj |= decode_typed(value, resource.schema, unknown)
    fields.report_unknown(unknown)
    if resource.has_schema_defaults:
        return {**with_schema_defaults(obj, resource.schema), "metadata": obj["metadata"]}
    return with_builtin_defaults(obj)


def read_body(resource: ServedResource, value: Any, fields: FieldValidation = IGNORED) -> Object:
    """Return the object from the body of a create or an update; errors name the expected kind.

    Raises:
        BadRequestError: The body is not such an object.
        InvalidError: The body is a custom resource of another kind.
    """
    if isinstance(value, dict):
        _check_type(resource, value)
    try:
        return read_object(resource, value, fields)
    except BadRequestError as error:
        version, kind = resource.gvk.version, resource.gvk.kind
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {error.message}'
        raise BadRequestError(message) from None


def read_patch_result(resource: ServedResource, value: Any, fields: FieldValidation = IGNORED) -> Object:
    """Return the object from the result of a patch, which must have the same kind.

    Raises:
        BadRequestError: The result is not such an object.
        InvalidError: The result is a custom resource of another kind.
    """
    gvk = resource.gvk
    if isinstance(value, dict):
        for name, expected in (("kind", gvk.kind), ("apiVersion", gvk.api_version)):
            found = value.get(name)
            if found == expected or (found is None and not resource.is_custom):
                continue
            if not resource.is_custom or not isinstance(found, str):
                raise BadRequestError(f"{name} is {format_value(found)}, and stays {quote(expected)}")
            kind = found if name == "kind" else gvk.kind
            raise new_invalid(
                gvk.group, kind, ObjectKey.of(value).name, [field_invalid(name, found, f"must be {expected}")]
            )
    return read_object(resource, value, fields)


def _check_type(resource: ServedResource, value: Object) -> None:
    gvk = resource.gvk
    api_version, kind = value.get("apiVersion", gvk.api_version), value.get("kind", gvk.kind)
    if api_version != gvk.api_version:
        raise BadRequestError(
            f"the API version in the data ({api_version}) does not match the expected API version ({gvk.api_version})"
        )
    if kind != gvk.kind and resource.is_custom:
        name = ObjectKey.of(value).name
        raise new_invalid(gvk.group, str(kind), name, [field_invalid("kind", kind, f"must be {gvk.kind}")])
    if kind != gvk.kind:
        message = f"the kind in the data ({kind}) does not match the expected kind ({gvk.kind})"
        raise BadRequestError(f'{kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {message}')


def _read_custom_resource(
    resource: ServedResource, value: Object, fields: FieldValidation, *, keeps_nulls: bool
) -> Object:
    schema = resource.schema
    unknown: list[str] = []
    metadata_schema = schema.properties["metadata"]
    metadata = decode_typed(value.get("metadata") or {}, metadata_schema, unknown)
    unknown = [f"metadata.{path}" for path in unknown]
    obj: Object = with_schema_defaults(value if keeps_nulls else remove_meaningless_nulls(value, schema), schema)
    obj["metadata"] = metadata
    fields.report_unknown(sorted([*unknown, *prune(obj, schema)]))
    return obj
