"""Step 4: other objects of the cluster, read before anything is written.

Absence is a result, not an error: an absent object, a kind that the cluster does not serve, an entry whose conditions
do not hold. All have ``found: false`` and no content.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.secret_redaction import LAST_APPLIED
from konverge.errors import ConfigurationError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge_box._internal.expressions import (
    OMIT,
    Sensitive,
    compile_expression,
    compile_structure,
    find_earliest_change,
    to_sensitive,
)
from konverge_box._internal.expressions.values import describe_value_type, format_scalar
from konverge_box._internal.file import CrossEntry
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.object_reader import MappingReader, ObjectReader
from konverge_box._internal.steps.scope import Scope

__all__ = ["MAX_OBSERVED_OBJECTS", "Observations", "build_observation"]

MAX_OBSERVED_OBJECTS = 1000
"""Maximum number of objects of an entry with ``strategy: all``."""

_SECRET = GroupVersionKind("", "v1", "Secret")
_CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
_NOT_IN_A_PATH = ("/", "%")


class Observations:
    """The compiled ``cross`` entries.

    Args:
        declared: The entries.
        where: Their path in the file, for example ``spec.crds.website.cross``.
        kinds: The kinds of the file's custom resources, by the file's names for them.

    Raises:
        konverge.errors.ConfigurationError: Entries read each other in a cycle. Loading the file reports that earlier.
    """

    def __init__(self, declared: tuple[CrossEntry, ...], where: str, kinds: Mapping[str, GroupVersionKind]) -> None:
        entries = {
            entry.name: _Observation(entry, f"{where}[{number}]", kinds[entry.crd] if entry.crd else None)
            for number, entry in enumerate(declared)
        }
        needs = {name: sorted(entry.read_entries & entries.keys()) for name, entry in entries.items()}
        try:
            order = tuple(TopologicalSorter(needs).static_order())
        except CycleError as error:
            cycle = " -> ".join(reversed(error.args[1]))
            raise ConfigurationError(f"{where}: these entries of cross read each other: {cycle}") from None
        self._entries = {name: entries[name] for name in order}
        self.kinds = frozenset(entry.gvk for entry in entries.values())
        """All kinds that can be read. A kind that is not served yet can be watched until it is."""

    async def observe(self, scope: Scope, reader: MappingReader, quiet: MappingReader) -> dict[str, Any]:
        """Read the objects of all entries, each entry after those that it refers to.

        Entries are read one after the other: watched objects come from memory, without waiting.

        Args:
            scope: The scope of the expressions of all entries, without ``cross``.
            reader: A reader whose objects queue the custom resource when they change.
            quiet: A reader whose objects queue nothing, for entries with ``wake: false``.

        Returns:
            The value of ``cross`` in expressions: the result of each entry by its name (`build_observation`).

        Raises:
            StepError: A name or label is not text, a label or a namespace is missing, or there are too many objects.
            konverge_box.expressions.ExpressionError: An expression has no value.
            konverge.errors.KonvergeError: The server could not be read. An absent object is not an error.
        """
        results: dict[str, Any] = {}
        for name, entry in self._entries.items():
            results[name] = await entry.observe(
                scope.with_names(cross=results), reader if entry.triggers_reconcile else quiet
            )
        return results

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which the conditions of an entry can change by themselves; None without one."""
        return find_earliest_change((entry.conditions for entry in self._entries.values()), now)


def build_observation(gvk: GroupVersionKind, found: Sequence[Object]) -> dict[str, Any]:
    """Return the value of an entry in expressions: the fields of the first object, and ``items`` with those of each.

    The fields are ``found``, ``name``, ``namespace``, ``labels``, ``annotations``, ``spec`` and ``status``. A Secret or
    a ConfigMap also has ``data``. The data of a Secret is decoded and sensitive, without values that are not text.

    Args:
        gvk: The kind, which need not be served.
        found: The objects in order; empty without one.
    """
    return {
        **_to_expression_value(gvk, found[0] if found else None),
        "items": [_to_expression_value(gvk, each) for each in found],
    }


class _Observation:
    def __init__(self, declared: CrossEntry, where: str, gvk: GroupVersionKind | None) -> None:
        self.where = where
        self.gvk = gvk or GroupVersionKind.parse(declared.api_version or "", declared.kind or "")
        self.triggers_reconcile = declared.wake
        self.conditions = compile_entry_conditions(declared, where)
        self._reads_all = declared.strategy == "all"
        selector = declared.selector
        at = f"{where}.selector"
        self._name = compile_expression(selector.name, where=f"{at}.name")
        self._namespace = compile_expression(selector.namespace, where=f"{at}.namespace")
        self._by_labels = bool(selector.match_labels)
        self._labels = compile_structure(selector.match_labels, where=f"{at}.matchLabels")
        parts = (self.conditions, self._name, self._namespace, self._labels)
        names = frozenset[tuple[str, ...]]().union(*(part.list_read_paths() for part in parts))
        self.read_entries = frozenset(name[1] for name in names if name[0] == "cross" and len(name) > 1)

    async def observe(self, scope: Scope, reader: MappingReader) -> dict[str, Any]:
        if not scope.holds(self.conditions):
            return build_observation(self.gvk, [])
        try:
            is_namespaced = (await reader.mapping(self.gvk)).namespaced
        except KindUnreachableError:
            raise  # the object may exist, and a condition on ``found`` could delete others
        except KindNotServedError:
            # Read it nevertheless, so that an object that is created later queues the custom resource.
            is_namespaced = True
        try:
            objects = await self._find_objects(
                scope, reader, self._render_namespace(scope) if is_namespaced else "", is_namespaced
            )
        except KindUnreachableError:
            raise
        except (NotFoundError, KindNotServedError):
            return build_observation(self.gvk, [])
        if self._reads_all and len(objects) > MAX_OBSERVED_OBJECTS:
            problem = f"expected at most {MAX_OBSERVED_OBJECTS} objects, found {len(objects)}; select by more labels"
            raise StepError(self.where, problem)
        return build_observation(self.gvk, objects if self._reads_all else objects[:1])

    def _render_namespace(self, scope: Scope) -> str:
        declared = _to_label_text(scope.render(self._namespace), self._namespace.where)
        return declared or str(scope.names["metadata"].get("namespace") or "")

    async def _find_objects(
        self, scope: Scope, reader: ObjectReader, namespace: str, is_namespaced: bool
    ) -> list[Object]:
        """Return the selected objects in order.

        Raises:
            NotFoundError: No object has that name.
            KindNotServedError: The kind is not served.
        """
        if self._by_labels:
            objects = await reader.list(self.gvk, namespace=namespace, labels=self._render_labels(scope))
            return sorted(objects, key=ObjectKey.of)
        name = _to_label_text(scope.render(self._name), self._name.where)
        if not _is_possible_name(name) or not (namespace == "" or _is_possible_name(namespace)):
            return []
        if is_namespaced and not namespace:
            raise StepError(
                f"{self.where}.selector", "expected a namespace, found none: the custom resource is cluster-scoped"
            )
        return [await reader.get(self.gvk, ObjectKey(namespace, name))]

    def _render_labels(self, scope: Scope) -> dict[str, str]:
        at = f"{self.where}.selector.matchLabels"
        labels = {key: _to_label_text(value, f"{at}.{key}") for key, value in scope.render(self._labels).items()}
        if not labels:
            raise StepError(at, "expected a label, found none: an empty selector would select every object")
        return labels


def _to_label_text(value: Any, where: str) -> str:
    """Convert a value to a name or a label value; ``omit`` and null become empty text, which names no object."""
    if value is OMIT or value is None:
        return ""
    if isinstance(value, Sensitive):
        raise StepError(where, "expected text, found a value that comes from a Secret (not shown)")
    try:
        return format_scalar(value)
    except ValueError:
        raise StepError(where, f"expected text, found {describe_value_type(value)}") from None


def _is_possible_name(name: str) -> bool:
    return name not in ("", ".", "..") and not any(sign in name for sign in _NOT_IN_A_PATH)


def _to_expression_value(gvk: GroupVersionKind, obj: Object | None) -> dict[str, Any]:
    live: Mapping[str, Any] = {} if obj is None else obj
    metadata = live.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    seen = {
        "found": obj is not None,
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "labels": metadata.get("labels") or {},
        "annotations": annotations,
        "spec": live.get("spec") or {},
        "status": live.get("status") or {},
    }
    if gvk == _CONFIG_MAP:
        seen["data"] = live.get("data") or {}
    elif gvk == _SECRET:
        seen["data"] = to_sensitive(_decode_data(live.get("data") or {}))
        if LAST_APPLIED in annotations:  # it contains the whole Secret
            seen["annotations"] = {**annotations, LAST_APPLIED: Sensitive(annotations[LAST_APPLIED])}
    return seen


def _decode_data(data: Mapping[str, str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in data.items():
        with suppress(ValueError):  # binascii.Error and UnicodeDecodeError are subclasses
            texts[key] = base64.b64decode(value, validate=True).decode()
    return texts
