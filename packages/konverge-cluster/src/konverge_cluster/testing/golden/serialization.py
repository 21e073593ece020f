"""Desired objects as the text of a golden file: the same objects give the same text, on any machine.

Documents come in apply order. Inside one, ``apiVersion``, ``kind`` and ``metadata`` come first and all other keys are
sorted: a mapping's order means nothing to Kubernetes, and a test that fails on it would cry wolf whenever a function is
rewritten. Lists keep their order, which does mean something.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import Any, TypeAlias

import yaml

from konverge.component import Component
from konverge.component.data_flow import fill_cells
from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_identity
from konverge.kube.secret_redaction import redact_secret_values
from konverge.kube.yaml_loader import YamlLimits, load_yaml_documents
from konverge.mutation import copy_json
from konverge.primitives import Data
from konverge.primitives.resource_protocol import Resource

__all__ = ["Renderable", "dump", "redact_text", "serialize"]

Renderable: TypeAlias = Component | Resource | Mapping[str, Any] | Iterable[Component | Resource | Mapping[str, Any]]
"""What a golden file can be of: a component, a primitive, an object, or several of them in their order."""

_FIRST = ("apiVersion", "kind", "metadata")
_NO_OBJECTS = "# no objects\n"
_HIDDEN = "***"
_OTHER_LINE_ENDS = frozenset("\x85\u2028\u2029")


class _GoldenDumper(yaml.SafeDumper):
    """PyYAML's own dumper, not libyaml's: the two fold lines differently, and not every machine has both."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write a value that occurs twice out twice."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Several lines show as such, and so do their diffs; what a block cannot hold, the emitter quotes by itself but for
    # Unicode's own line ends, which it would write as they are and a reader would take for spaces.
    style = '"' if _OTHER_LINE_ENDS.intersection(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_GoldenDumper.add_representer(str, _represent_text)


def serialize(rendered: Renderable, *, reveal_secrets: bool = False, data: Mapping[str, Any] | None = None) -> str:
    """The text of a golden file: YAML documents in apply order, with line feeds for line ends and one at the end.

    What a server sets is left out: ``creationTimestamp`` in metadata, and a status that is null or empty. A component
    is rendered by `Component.preview`: its managed objects, mutations and all, without guards and unsuspended.

    Args:
        rendered: A component, a primitive, an object, or several.
        reveal_secrets: Write the values of Secrets out. Without it each shows as ``***``, and a test sees which keys
            there are. No digest stands for a value: golden files are in a repository, and whoever reads a digest of a
            short or guessable value has the value.
        data: What data cells hold while it is rendered, by their names; afterwards they hold what they held before.

    Raises:
        konverge.errors.ConfigurationError: A name in `data` is not that of a cell of what is rendered.
        konverge.errors.KonvergeError: It cannot be rendered: a gate or mutation fails, an object names no kind, or
            something in it is no JSON.
    """
    parts = list(_iter_parts(rendered))
    objects = [_strip_server_fields(obj) for obj in copy_context().run(_render_objects, parts, data or {})]
    if not reveal_secrets:
        objects = [redact_secret_values(obj, _HIDDEN) for obj in objects]
    return dump(map(_sort_keys, objects)) if objects else _NO_OBJECTS


def dump(documents: Iterable[Any]) -> str:
    """YAML documents, keys in the order in which they come."""
    return yaml.dump_all(
        documents,
        Dumper=_GoldenDumper,
        sort_keys=False,
        explicit_start=True,
        allow_unicode=True,
        default_flow_style=False,
        width=sys.maxsize,  # a folded line would move its neighbours when a word changes
    )


def redact_text(text: str) -> str:
    """The text of a golden file, safe to show: as it is, or rendered again without the values that it should not hold.

    A file may have been written with `reveal_secrets`, or by hand. What is no YAML is taken for harmless only if it
    does not say ``Secret``.
    """
    if "Secret" not in text:
        return text
    try:
        documents = load_yaml_documents(text, YamlLimits(may_repeat_fields=True))
        found = [document for document in documents if document is not None]
    except yaml.YAMLError:
        return "# no YAML, and it may hold a Secret: not shown\n"
    hidden = [redact_secret_values(document, _HIDDEN) for document in found]
    return text if hidden == found else dump(hidden)


def _iter_parts(rendered: Renderable) -> Iterator[Any]:
    """Each component, primitive and object in it, in order."""
    # A protocol that is no class cannot be asked for.
    if isinstance(rendered, Component | Mapping) or callable(getattr(rendered, "render", None)):
        yield rendered
    elif isinstance(rendered, Iterable) and not isinstance(rendered, str | bytes):
        for part in rendered:
            yield from _iter_parts(part)
    else:
        raise KonvergeError(
            f"a golden file cannot be made of {type(rendered).__name__}: expected a component, a primitive, an "
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
    """A copy without what a server sets, as JSON."""
    try:
        gvk = GroupVersionKind.of(obj)
    except ValueError as error:
        raise KonvergeError(f"a golden file cannot be made of object {ObjectKey.of(obj)}: {error}") from None
    try:
        copied: Object = copy_json(obj)
    except (TypeError, ValueError, RecursionError) as error:
        # A ValueError quotes the text that is no Unicode; a TypeError names a type.
        reason = str(error) if isinstance(error, TypeError) else type(error).__name__
        raise KonvergeError(f"{format_identity(gvk, ObjectKey.of(obj))} is no JSON object: {reason}") from None
    if not copied.get("status"):
        copied.pop("status", None)
    if isinstance(metadata := copied.get("metadata"), dict):
        metadata.pop("creationTimestamp", None)
    cleaned: Object = _drop_null_timestamps(copied)
    return cleaned


def _drop_null_timestamps(value: Any) -> Any:
    """The value without the ``creationTimestamp: null`` that Go's tools leave in the metadata of templates."""
    if isinstance(value, list):
        return [_drop_null_timestamps(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _drop_null_timestamps(item) for key, item in value.items()}
    metadata = found.get("metadata")
    if isinstance(metadata, dict) and metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]
    return found


def _sort_keys(value: Any, first: tuple[str, ...] = _FIRST) -> Any:
    if isinstance(value, list):
        return [_sort_keys(item, ()) for item in value]
    if not isinstance(value, dict):
        return value
    keys = [*(key for key in first if key in value), *sorted(key for key in value if key not in first)]
    return {key: _sort_keys(value[key], ()) for key in keys}
