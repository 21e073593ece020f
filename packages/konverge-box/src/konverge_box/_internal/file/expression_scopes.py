"""Checks of the names that the expressions of each step read: only declared names, only results of earlier steps.

The checks work on plain values, so that a box with other errors gets these errors at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge._internal.message_text import quote
from konverge_box._internal.file.box_kinds import KINDS, find_child_kind
from konverge_box._internal.file.crd_schemas import find_unknown_field
from konverge_box._internal.file.group_reads import find_group_read_errors
from konverge_box._internal.file.schema_references import (
    build_status_schema,
    find_comparison_error,
    find_loop_error,
    is_list_of_mappings,
)
from konverge_box._internal.file.struct_reader import has_expression
from konverge_box._internal.file.template_analysis import TemplateSyntaxError, find_field_paths, find_read_paths
from konverge_box._internal.file.validation_errors import Path, format_hint
from konverge_box._internal.file.yaml_source import YamlSource

__all__ = ["CONDITION_LISTS", "GROUP_STEPS", "STEPS", "check_scopes", "get_result_name", "is_resource"]

_OBJECT_NAMES = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})

STEPS: dict[str, frozenset[str]] = {
    "normalize": frozenset(),
    "mutation": frozenset(),
    "validation": frozenset(),
    "cross": frozenset({"cross"}),
    "external": frozenset({"cross", "external"}),
    "onCreate": frozenset({"cross", "external", "children", "providers"}),
    "onReconcile": frozenset({"cross", "external", "children", "providers"}),
    "providers": frozenset({"cross", "external"}),
    "status": frozenset({"cross", "external", "providers", "children"}),
    "onDelete": frozenset(),
}
"""The steps in execution order, each with the names that it may read besides the custom resource itself."""

GROUP_STEPS = ("onCreate", "onReconcile")
"""The steps that contain groups of resources."""

CONDITION_LISTS = ("when", "or", "anyOf", "suspend", "waitFor", "readyWhen")
"""The fields whose values are lists of conditions."""

_PRODUCING_STEPS = {"cross": "cross", "external": "external", "providers": "providers", "children": "onReconcile"}
_ITEM_NAMES = frozenset({"item", "index", "value", "key"})
_RESERVED_ITEM_NAMES = _OBJECT_NAMES | _PRODUCING_STEPS.keys() | _ITEM_NAMES - {"item"} | {"self"}
_MAX_LOOPS = 4
_CROSS_FIELDS = ("found", "name", "namespace", "spec", "status", "labels", "annotations", "items")
_DATA_KINDS = ("Secret", "ConfigMap")
_PATH = re.compile(r"^\.?[A-Za-z_][\w-]*(\.[\w-]+)*$")
_STEP = re.compile(r"[\w-]+")

Names = tuple[str, ...]


@dataclass
class _DeclaredNames:
    """Names that one custom resource of the file declares for its expressions."""

    schema: Any
    cross: dict[str, Any]
    with_data: frozenset[str]
    external: frozenset[str]
    providers: frozenset[str]
    children: frozenset[str]
    written: list[Names] = field(default_factory=list)


def check_scopes(source: YamlSource, crds: Mapping[str, Any]) -> dict[str, dict[str, set[Names]]]:
    """Check the expressions of all custom resources.

    Args:
        source: The document, which collects the errors.
        crds: ``spec.crds`` as plain values.

    Returns:
        The paths that each entry of ``cross`` and ``external`` reads, by the step's path and the entry's name. The
        search for cycles uses them.
    """
    reads: dict[str, dict[str, set[Names]]] = {}
    schemas = {name: _get_schema(each) for name, each in crds.items()}
    for name, entry in crds.items():
        if not isinstance(entry, dict):
            continue
        scope = _build_scope(entry, schemas)
        if "pause" in entry:
            _StepChecker(source, "pause", scope, {}).check_value(entry["pause"], ("spec", "crds", name, "pause"))
        late_reads: list[tuple[Path, Names]] = []
        for step in STEPS:
            if step in entry:
                path = ("spec", "crds", name, step)
                checker = _StepChecker(source, step, scope, reads.setdefault(f"{name}.{step}", {}))
                checker.check_value(entry[step], path)
                late_reads += checker.late_reads
        for at, message in find_group_read_errors(_list_groups(entry, ("spec", "crds", name)), late_reads):
            source.add_error(at, message)
    return reads


def is_resource(path: Path) -> bool:
    """Tell whether the path leads to a resource: an entry of one of the lists of a group."""
    if len(path) < 6 or path[3] not in GROUP_STEPS:
        return False
    in_group = path[5:] if isinstance(path[4], int) else path[4:]  # a group may stand alone
    return len(in_group) == 2 and in_group[0] in KINDS and isinstance(in_group[1], int)


def get_result_name(step: str, entry: Mapping[str, Any]) -> str:
    """Return the name by which expressions read the result of an entry of ``cross`` or ``external``; empty if none."""
    name = entry.get("name") if step == "external" else entry.get("as") or entry.get("crd")
    return name if isinstance(name, str) else ""


def _get_schema(entry: Any) -> Any:
    resource = entry.get("resource") if isinstance(entry, dict) else None
    schema = resource.get("schema") if isinstance(resource, dict) else None
    return {**schema, "status": build_status_schema(entry)} if isinstance(schema, dict) else None


def _build_scope(entry: dict[str, Any], schemas: Mapping[str, Any]) -> _DeclaredNames:
    cross: dict[str, Any] = {}
    for each in _list_mappings(entry.get("cross")):
        cross[get_result_name("cross", each)] = schemas.get(str(each.get("crd")))
    with_data = frozenset(
        get_result_name("cross", each)
        for each in _list_mappings(entry.get("cross"))
        if each.get("apiVersion") == "v1" and each.get("kind") in _DATA_KINDS
    )
    external = frozenset(get_result_name("external", each) for each in _list_mappings(entry.get("external")))
    providers = entry.get("providers")
    groups = [group for step in GROUP_STEPS for group in _list_mappings(entry.get(step))]
    children = frozenset(key for group in groups for key in group if key in KINDS)
    scope = _DeclaredNames(
        _get_schema(entry),
        cross,
        with_data,
        external,
        frozenset(providers if isinstance(providers, dict) else ()),
        children,
    )
    normalize = entry.get("normalize")
    made = normalize.get("spec") if isinstance(normalize, dict) else None
    scope.written = [("spec", *_split_path(path)) for path in (made if isinstance(made, dict) else ())]
    fields = [str(rule.get("field")) for rule in _list_mappings(entry.get("mutation"))]
    # The path that an expression renders is unknown: it may be any field.
    scope.written += [("spec",) if has_expression(field) else _split_path(field) for field in fields]
    return scope


def _list_groups(entry: dict[str, Any], path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Return the groups of both steps with their paths; a group may stand alone."""
    groups: list[tuple[Path, dict[str, Any]]] = []
    for step in GROUP_STEPS:
        value = entry.get(step)
        if isinstance(value, dict):
            groups.append(((*path, step), value))
        elif isinstance(value, list):
            groups += [((*path, step, index), each) for index, each in enumerate(value) if isinstance(each, dict)]
    return groups


def _list_name_texts(value: dict[str, Any]) -> list[str]:
    """Return the name and the namespace of an entry, as far as they are given."""
    manifest = value.get("manifest")
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    inner = metadata if isinstance(metadata, dict) else {}
    texts = [value.get("name"), value.get("namespace"), inner.get("name"), inner.get("namespace")]
    return [text for text in texts if isinstance(text, str) and text]


def _list_loops(value: dict[str, Any], path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Return the loops of an entry with their paths; empty for a mapping inside a Kubernetes object."""
    if "forEach" not in value or any(is_resource(path[:end]) for end in range(5, len(path))):
        return []
    declared, at = value["forEach"], (*path, "forEach")
    if isinstance(declared, dict):
        return [(at, declared)]
    listed = declared if isinstance(declared, list) else []
    return [((*at, index), each) for index, each in enumerate(listed) if isinstance(each, dict)]


def _list_mappings(value: Any) -> list[dict[str, Any]]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, dict)]


def _split_path(path: str) -> Names:
    return tuple(step for step in _STEP.findall(path) if not step.isdigit())


def _is_related(name: Names, paths: Iterable[Names]) -> bool:
    """Tell whether a path is, contains or is contained in one of the others."""
    return any(name[: len(each)] == each or each[: len(name)] == name for each in paths)


class _StepChecker:
    """Checks the values of one step of one custom resource."""

    def __init__(self, source: YamlSource, step: str, scope: _DeclaredNames, reads: dict[str, set[Names]]) -> None:
        self._source = source
        self._step = step
        self._scope = scope
        self._reads = reads
        self.late_reads: list[tuple[Path, Names]] = []

    def check_value(self, value: Any, path: Path, items: frozenset[str] = frozenset(), entry: str = "") -> None:
        """Check a value and everything in it.

        Args:
            value: The plain value.
            path: The path of the value in the file.
            items: The names that the enclosing loop defines.
            entry: The name of the enclosing entry of ``cross`` or ``external``.
        """
        if isinstance(value, str):
            if has_expression(value):
                self._check_text(value, path, items, entry)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                self.check_value(each, (*path, index), items, entry)
        elif isinstance(value, dict):
            self._check_mapping(value, path, items, entry)

    def _check_mapping(self, value: dict[str, Any], path: Path, items: frozenset[str], entry: str) -> None:
        if len(path) == 5 and self._step in ("cross", "external"):
            entry = get_result_name(self._step, value)
            self._reads.setdefault(entry, set())
        loops = _list_loops(value, path)
        if value.get("forEach") == [] and not any(is_resource(path[:end]) for end in range(5, len(path))):
            self._source.add_error((*path, "forEach"), "expected at least one loop, found an empty list")
        if loops:
            items = self._check_loops(value, loops, path, items, entry)
        for key, each in value.items():
            if loops and key == "forEach":
                continue
            at = (*path, key)
            if has_expression(key):
                self._check_text(key, at, items, entry)
            if key == "field" and isinstance(each, str) and not has_expression(each) and self._is_condition(path):
                self._check_text(each, at, items, entry, is_field=True)
                self._check_comparison(value, each, path, items)
            inner = items | {"self"} if key == "readyWhen" and is_resource(path) else items
            self.check_value(each, at, inner, entry)

    def _is_condition(self, path: Path) -> bool:
        if isinstance(path[-1], int) and len(path) >= 2 and path[-2] in CONDITION_LISTS:
            return not any(is_resource(path[:end]) for end in range(5, len(path) - 2))
        return self._step in ("validation", "pause") and len(path) == 5

    def _check_loops(
        self,
        value: dict[str, Any],
        loops: list[tuple[Path, dict[str, Any]]],
        path: Path,
        items: frozenset[str],
        entry: str,
    ) -> frozenset[str]:
        """Check the loops of an entry from the outer to the inner one; return the names that the entry can read."""
        names: list[str] = []
        has_keys = True
        if len(loops) > _MAX_LOOPS:
            self._source.add_error((*path, "forEach"), f"expected at most {_MAX_LOOPS} loops, found {len(loops)}")
        for at, loop in loops:
            name = str(loop.get("as", "item"))
            if name in names:
                self._source.add_error(at, f"two loops have the name {name}; set as")
            if name in _RESERVED_ITEM_NAMES:
                self._source.add_error((*at, "as"), f"{name} has another meaning in expressions; use another name")
            names.append(name)
            is_keyed = self._check_loop(loop, at, items, entry)
            items = items | {"item", "value", name}
            if isinstance(loop.get("key"), str):
                self._check_text(loop["key"], (*at, "key"), items, entry)
            has_keys = has_keys and is_keyed
        items = items | {"index", *(["key"] if has_keys else [])}
        if len(path) >= 6:
            self._check_item_names(value, names, path, has_keys=has_keys)
        return items

    def _check_loop(self, loop: dict[str, Any], path: Path, items: frozenset[str], entry: str) -> bool:
        """Check the field of a loop; return False if its items are mappings without a key."""
        over, at = loop.get("field"), (*path, "field")
        if not isinstance(over, str):
            return True
        if has_expression(over):
            self._check_text(over, at, items, entry)
            return True
        if not _PATH.match(over):
            self._source.add_error(at, f"expected a path such as spec.hosts, or an expression, found {quote(over)}")
            return True
        self._check_name(_split_path(over), at, items, entry)
        schema, steps = self._find_schema(_split_path(over), items)
        if error := find_loop_error(schema, steps):
            self._source.add_error(at, f"{error}: {over}")
        return "key" in loop or not is_list_of_mappings(schema, steps)

    def _check_item_names(self, value: dict[str, Any], names: list[str], path: Path, *, has_keys: bool) -> None:
        """Check that the items of all loops make different objects."""
        texts = _list_name_texts(value)
        try:
            read = {name[0] for text in texts for name in find_read_paths(text, ()) if name}
        except TemplateSyntaxError:
            return  # reported elsewhere
        if read & {"index", "key"} or (not texts and has_keys):
            return  # the default name contains the key
        at = (*path, "name") if "name" in value else path
        for name in names:
            accepted = {name} if name != names[-1] else {name, "item", "value"}
            if not read & accepted:
                what = "each item makes an object with the same name; use item, index, key or value in the name"
                if len(names) > 1:
                    what = (
                        f"the items of the loop {name} make objects with the same name; use {name} or key in the name"
                    )
                self._source.add_error(at, what)
                return

    def _check_comparison(self, value: dict[str, Any], field: str, path: Path, items: frozenset[str]) -> None:
        if not _PATH.match(field):
            return
        schema, steps = self._find_schema(_split_path(field), items)
        error = find_comparison_error(value, schema, steps)
        if error is not None:
            self._source.add_error((*path, error[0]), error[1])

    def _find_schema(self, name: Names, items: frozenset[str]) -> tuple[Any, Names]:
        """Return the schema in which a path leads, and the rest of the path; None if the file does not describe it."""
        scope, schema, rest = self._scope, self._scope.schema, name
        if name[:1] == ("cross",) and len(name) > 2:
            schema, rest = scope.cross.get(name[1]), name[2:]
        if not name or not rest or rest[0] not in ("spec", "status"):
            return None, ()
        if name[0] in items or _is_related(name, scope.written):
            return None, ()
        return (schema.get(rest[0]) if isinstance(schema, dict) else None), rest[1:]

    def _check_text(self, text: str, path: Path, items: frozenset[str], entry: str, *, is_field: bool = False) -> None:
        try:
            names = find_field_paths(text, path) if is_field else find_read_paths(text, path)
        except TemplateSyntaxError as error:
            self._source.add_error(path, str(error))
            return
        for name in sorted(names):
            self._check_name(name, path, items, entry)

    def _check_name(self, name: Names, path: Path, items: frozenset[str], entry: str) -> None:
        if not name or name[0] in items:
            return
        root = name[0]
        visible = _OBJECT_NAMES | STEPS.get(self._step, frozenset())
        if root in _PRODUCING_STEPS and root not in visible:
            made = _PRODUCING_STEPS[root]
            why = f"{made} sets it after {self._step}" if made != self._step else f"{made} sets it"
            if self._step == "onDelete":
                why = "a deletion does not run the step that sets it"
            self._source.add_error(path, f"{'.'.join(name)} is not available here: {why}")
        elif root == "key" and "index" in items:
            self._source.add_error(path, "key is not available: the items are mappings; declare key in forEach")
        elif root in _ITEM_NAMES:
            self._source.add_error(path, f"{root} is available only in an entry with forEach")
        elif root not in visible:
            self._source.add_error(path, f"unknown name: {root}{format_hint(root, [*visible, *items])}")
        else:
            if entry:
                self._reads[entry].add(name)
                if root == self._step and len(name) == 1:
                    self._source.add_error(path, f"{root} is incomplete here; read one entry of it: {root}.<name>")
            if self._step in GROUP_STEPS and root in ("children", "providers"):
                self.late_reads.append((path, name))
            self._check_declared(name, path)

    def _check_declared(self, name: Names, path: Path) -> None:
        root, *rest = name
        if not rest:
            return
        scope, second = self._scope, rest[0]
        declared = {"cross": scope.cross, "external": scope.external, "providers": scope.providers}.get(root)
        if declared is not None and second not in declared:
            near = format_hint(second, declared) or f"; {root} has no entries"
            self._source.add_error(path, f"{root}.{second} is not declared{near}")
        elif root == "cross" and len(rest) > 1:
            fields = (*_CROSS_FIELDS, "data") if second in scope.with_data else _CROSS_FIELDS
            if rest[1] not in fields:
                self._source.add_error(path, f"{'.'.join(name[:3])}: unknown field{format_hint(rest[1], fields)}")
            else:
                self._check_in_schema(scope.cross[second], tuple(rest[1:]), (), f"cross.{second}.", path)
        elif root == "children":
            kind = find_child_kind(second)
            words = [word for each in KINDS.values() for word in (each.plural, each.singular)]
            if kind is None:
                self._source.add_error(path, f"children.{second}: unknown kind{format_hint(second, words)}")
            elif kind.key not in scope.children:
                self._source.add_error(path, f"children.{second}: onCreate and onReconcile declare no {kind.key}")
        elif root in ("spec", "status"):
            self._check_in_schema(scope.schema, name, tuple(scope.written), "", path)

    def _check_in_schema(self, schema: Any, name: Names, written: tuple[Names, ...], prefix: str, path: Path) -> None:
        part = name[0]
        if part not in ("spec", "status") or not isinstance(schema, dict) or schema.get(part) is None:
            return
        if _is_related(name, written):
            return
        unknown = find_unknown_field(schema[part], name[1:])
        if unknown is not None:
            self._source.add_error(path, f"{prefix}{part}.{unknown[0]} is not in the schema{unknown[1]}")
