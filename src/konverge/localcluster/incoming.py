"""From what a client sent to an object that the server can work with: decoded, pruned, defaulted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from konverge.apply import with_defaults, with_schema_defaults, without_meaningless_nulls
from konverge.errors import BadRequestError
from konverge.kube import Object, ObjectKey
from konverge.localcluster.pruning import prune
from konverge.localcluster.resources import Resource
from konverge.localcluster.typed import as_typed
from konverge.localcluster.validation.mistakes import invalid, quoted, refusal, shown

__all__ = ["IGNORED", "FieldValidation", "Strictness", "read_body", "read_object", "read_patched"]

Strictness: TypeAlias = Literal["Ignore", "Warn", "Strict"]

# So many fields are told of; a body may have far more that are unknown.
_TOLD_LIMIT = 100


@dataclass(frozen=True, slots=True)
class FieldValidation:
    """What becomes of fields that are unknown or stand twice (the ``fieldValidation`` of a request).

    Attributes:
        strictness: Whether they are ignored, told, or refused.
        duplicates: The paths of the keys that stood twice in the body.
        told: Gets the sentences that are told.
    """

    strictness: Strictness = "Ignore"
    duplicates: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list)

    def judge(self, unknown: Sequence[str]) -> None:
        """Tell or refuse the unknown fields and the doubled ones.

        Raises:
            BadRequestError: They are refused.
        """
        if self.strictness == "Ignore":
            return
        found = [f"unknown field {quoted(path)}" for path in unknown]
        found += [f"duplicate field {quoted(path)}" for path in self.duplicates]
        found = list(dict.fromkeys(found))[:_TOLD_LIMIT]
        if self.strictness == "Strict" and found:
            raise BadRequestError(f"strict decoding error: {', '.join(found)}")
        self.told.extend(found)


IGNORED = FieldValidation()


def read_object(
    resource: Resource, value: Any, fields: FieldValidation = IGNORED, *, keeps_nulls: bool = False
) -> Object:
    """The object of that resource which a body stands for; `value` is not changed.

    Args:
        resource: What the object is to be.
        value: The decoded body; apiVersion and kind may be left out.
        fields: What becomes of unknown fields.
        keeps_nulls: Leave nulls in a custom resource for validation to refuse, as with what an apply merged.

    Raises:
        BadRequestError: It is no such object.
    """
    gvk = resource.gvk
    if not isinstance(value, dict):
        raise BadRequestError("it is no mapping")
    obj: Object = {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": {}}
    if resource.is_custom:
        return obj | _custom(resource, value, fields, keeps_nulls=keeps_nulls)
    unknown: list[str] = []
    obj |= as_typed(value, resource.schema, unknown)
    fields.judge(unknown)
    if resource.has_schema_defaults:
        return {**with_schema_defaults(obj, resource.schema), "metadata": obj["metadata"]}
    return with_defaults(obj)


def read_body(resource: Resource, value: Any, fields: FieldValidation = IGNORED) -> Object:
    """The same for the body of a create or an update, where the refusal says what was to be read.

    Raises:
        BadRequestError: It is no such object.
        InvalidError: It is a custom resource of another kind.
    """
    if isinstance(value, dict):
        _check_type(resource, value)
    try:
        return read_object(resource, value, fields)
    except BadRequestError as mistake:
        version, kind = resource.gvk.version, resource.gvk.kind
        told = f'{kind} in version "{version}" cannot be handled as a {kind}: {mistake.message}'
        raise BadRequestError(told) from None


def read_patched(resource: Resource, value: Any, fields: FieldValidation = IGNORED) -> Object:
    """The same for what a patch makes of an object, which stays of its kind.

    Raises:
        BadRequestError: It is no such object.
        InvalidError: It is a custom resource of another kind.
    """
    gvk = resource.gvk
    if isinstance(value, dict):
        for name, wanted in (("kind", gvk.kind), ("apiVersion", gvk.api_version)):
            found = value.get(name)
            if found == wanted or (found is None and not resource.is_custom):
                continue
            if not resource.is_custom or not isinstance(found, str):
                raise BadRequestError(f"{name} is {shown(found)}, and stays {quoted(wanted)}")
            kind = found if name == "kind" else gvk.kind
            raise refusal(gvk.group, kind, ObjectKey.of(value).name, [invalid(name, found, f"must be {wanted}")])
    return read_object(resource, value, fields)


def _check_type(resource: Resource, value: Object) -> None:
    gvk = resource.gvk
    api_version, kind = value.get("apiVersion", gvk.api_version), value.get("kind", gvk.kind)
    if api_version != gvk.api_version:
        raise BadRequestError(
            f"the API version in the data ({api_version}) does not match the expected API version ({gvk.api_version})"
        )
    if kind != gvk.kind and resource.is_custom:
        name = ObjectKey.of(value).name
        raise refusal(gvk.group, str(kind), name, [invalid("kind", kind, f"must be {gvk.kind}")])
    if kind != gvk.kind:
        told = f"the kind in the data ({kind}) does not match the expected kind ({gvk.kind})"
        raise BadRequestError(f'{kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {told}')


def _custom(resource: Resource, value: Object, fields: FieldValidation, *, keeps_nulls: bool) -> Object:
    schema = resource.schema
    unknown: list[str] = []
    metadata_schema = schema.properties["metadata"]
    metadata = as_typed(value.get("metadata") or {}, metadata_schema, unknown)
    unknown = [f"metadata.{path}" for path in unknown]
    obj: Object = with_schema_defaults(value if keeps_nulls else without_meaningless_nulls(value, schema), schema)
    obj["metadata"] = metadata
    fields.judge(sorted([*unknown, *prune(obj, schema)]))
    return obj
