"""Desired objects as the text of a golden file: the same objects give the same text, on any machine.

Documents are in apply order. In each document ``apiVersion``, ``kind`` and ``metadata`` come first and all other keys
are sorted: the order of a mapping has no meaning in Kubernetes, and a test that depends on it would fail after harmless
changes. Lists keep their order, which has a meaning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import Any, TypeAlias

import yaml

from konverge._internal.component import Component
from konverge._internal.component.data_flow import fill_cells
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_identity
from konverge._internal.kube.secret_redaction import redact_secret_values
from konverge._internal.kube.yaml_loader import YamlLimits, load_yaml_documents
from konverge._internal.mutation import copy_json
from konverge._internal.primitives import Data
from konverge._internal.primitives.resource_protocol import Resource
from konverge.errors import KonvergeError

__all__ = ["Renderable", "dump", "redact_text", "serialize"]

Renderable: TypeAlias = Component | Resource | Mapping[str, Any] | Iterable[Component | Resource | Mapping[str, Any]]
"""The input of a golden file: a component, a primitive, an object, or several of them in order."""

_FIRST = ("apiVersion", "kind", "metadata")
_NO_OBJECTS = "# no objects\n"
_HIDDEN = "***"
_OTHER_LINE_ENDS = frozenset("\x85\u2028\u2029")


class _GoldenDumper(yaml.SafeDumper):
    """A dumper in pure Python: libyaml folds lines differently and is not always installed."""

    def ignore_aliases(self, data: Any) -> bool:
        """Disable anchors: a value that occurs twice is written twice."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Text with several lines becomes a block, so that diffs show single lines. The emitter quotes text that a block
    # cannot contain, except for Unicode line ends: it would write them unchanged, and a reader would take them for
    # spaces.
    style = '"' if _OTHER_LINE_ENDS.intersection(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_GoldenDumper.add_representer(str, _represent_text)


def serialize(rendered: Renderable, *, reveal_secrets: bool = False, data: Mapping[str, Any] | None = None) -> str:
    """Return the text of a golden file: YAML documents in apply order, with line feeds as line ends.

    Fields that a server sets are left out: ``creationTimestamp`` in metadata, and a status that is null or empty. A
    component is rendered by `Component.preview`: its managed objects with all mutations, without guards and not
    suspended.

    Args:
        rendered: A component, a primitive, an object, or several.
        reveal_secrets: Write the values of Secrets. Without this, each value becomes ``***``, and the test still sees
            the keys. A digest would not protect it: golden files are in a repository, and a short or guessable value
            can be recovered from its digest.
        data: The values of data cells during rendering, by name; the earlier values are restored afterwards.

    Raises:
        konverge.errors.ConfigurationError: A name in `data` is not the name of a cell of the rendered components.
        konverge.errors.KonvergeError: Rendering failed: a gate or mutation fails, an object has no kind, or a value is
            not JSON.
    """
    parts = list(_iter_parts(rendered))
    objects = [_strip_server_fields(obj) for obj in copy_context().run(_render_objects, parts, data or {})]
    if not reveal_secrets:
        objects = [redact_secret_values(obj, _HIDDEN) for obj in objects]
    return dump(map(_sort_keys, objects)) if objects else _NO_OBJECTS


def dump(documents: Iterable[Any]) -> str:
    """Return YAML documents with keys in their given order."""
    return yaml.dump_all(
        documents,
        Dumper=_GoldenDumper,
        sort_keys=False,
        explicit_start=True,
        allow_unicode=True,
        default_flow_style=False,
        width=sys.maxsize,  # with folded lines, the change of one word would move its neighbors
    )


def redact_text(text: str) -> str:
    """Return the text of a golden file without the values of Secrets.

    The file can be written with `reveal_secrets` or by hand. Text that is not YAML counts as safe only if it does not
    contain ``Secret``.
    """
    if "Secret" not in text:
        return text
    try:
        documents = [
            document
            for document in load_yaml_documents(text, YamlLimits(may_repeat_fields=True))
            if document is not None
        ]
    except yaml.YAMLError:
        return "# not YAML, and it may contain a Secret: not shown\n"
    hidden = [redact_secret_values(document, _HIDDEN) for document in documents]
    return text if hidden == documents else dump(hidden)


def _iter_parts(rendered: Renderable) -> Iterator[Any]:
    """Yield each component, primitive and object in order."""
    # `isinstance` does not work with a protocol that is not checkable at run time.
    if isinstance(rendered, Component | Mapping) or callable(getattr(rendered, "render", None)):
        yield rendered
    elif isinstance(rendered, Iterable) and not isinstance(rendered, str | bytes):
        for part in rendered:
            yield from _iter_parts(part)
    else:
        raise KonvergeError(
            f"golden file: cannot render {type(rendered).__name__}: expected a component, a primitive, an "
            "object as a mapping, or several of them"
        )


def _render_objects(parts: Sequence[Any], data: Mapping[str, Any]) -> list[Object]:
    if data:
        fill_cells((cell for part in parts for cell in _list_cells(part)), data)
    return [obj for part in parts for obj in _render_part(part)]


def _list_cells(part: Any) -> tuple[Data[Any], ...]:
    if isinstance(part, Component):
        return part.cells
    return () if isinstance(part, Mapping) else (*part.produces, *part.requires, *part.optional_data)


def _render_part(part: Any) -> list[Object]:
    if isinstance(part, Component):
        return part.preview()
    return [dict(part)] if isinstance(part, Mapping) else [part.render()]


def _strip_server_fields(obj: Object) -> Object:
    """Return a copy as JSON without the fields that a server sets."""
    try:
        gvk = GroupVersionKind.of(obj)
    except ValueError as error:
        raise KonvergeError(f"golden file: cannot render object {ObjectKey.of(obj)}: {error}") from None
    try:
        copied: Object = copy_json(obj)
    except (TypeError, ValueError, RecursionError) as error:
        # The text of a ValueError contains the invalid text of the object; a TypeError contains only a type.
        reason = str(error) if isinstance(error, TypeError) else type(error).__name__
        raise KonvergeError(f"{format_identity(gvk, ObjectKey.of(obj))} is not a JSON object: {reason}") from None
    if not copied.get("status"):
        copied.pop("status", None)
    if isinstance(metadata := copied.get("metadata"), dict):
        metadata.pop("creationTimestamp", None)
    cleaned: Object = _drop_null_timestamps(copied)
    return cleaned


def _drop_null_timestamps(value: Any) -> Any:
    """Remove the ``creationTimestamp: null`` that Go's tools leave in the metadata of templates."""
    if isinstance(value, list):
        return [_drop_null_timestamps(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: _drop_null_timestamps(item) for key, item in value.items()}
    metadata = fields.get("metadata")
    if isinstance(metadata, dict) and metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]
    return fields


def _sort_keys(value: Any, first: tuple[str, ...] = _FIRST) -> Any:
    if isinstance(value, list):
        return [_sort_keys(item, ()) for item in value]
    if not isinstance(value, dict):
        return value
    keys = [*(key for key in first if key in value), *sorted(key for key in value if key not in first)]
    return {key: _sort_keys(value[key], ()) for key in keys}
