"""From the text of a file to a box: reads it, runs all checks, or rejects it with every error."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from konverge._internal.message_text import quote
from konverge_box._internal.file.box_kinds import KINDS
from konverge_box._internal.file.crd_schemas import find_schema_errors
from konverge_box._internal.file.dependency_cycles import find_cycle
from konverge_box._internal.file.expression_scopes import (
    CONDITION_LISTS,
    GROUP_STEPS,
    STEPS,
    check_scopes,
    get_result_name,
    is_resource,
)
from konverge_box._internal.file.group_reader import build_reader
from konverge_box._internal.file.imported_box import ImportedBox, merge_imports
from konverge_box._internal.file.model import KIND, RESERVED_STATUS, OperatorBox
from konverge_box._internal.file.randomness import check_randomness
from konverge_box._internal.file.schema_references import find_reference_errors
from konverge_box._internal.file.struct_reader import BAD, has_expression
from konverge_box._internal.file.template_analysis import find_condition_error
from konverge_box._internal.file.validation_errors import (
    BoxFieldError,
    BoxFileError,
    Path,
    format_hint,
    format_path,
)
from konverge_box._internal.file.yaml_source import YamlSource, parse_source

__all__ = ["find_file_errors", "load_box"]

# The names of the components of groups without a name, with a number if there are several.
_UNNAMED = re.compile(r"(resources|created)[0-9]*")
# The keys of labels and annotations contain dots and slashes.
_MUTABLE = re.compile(r"\.?(spec(\.[\w-]+)+|metadata\.(labels|annotations)\.[A-Za-z0-9][\w./-]*)")


def load_box(
    text: str | bytes, *, file: str = "box.yaml", imported: Sequence[ImportedBox] | None = None
) -> OperatorBox:
    """Load the box of a file.

    Args:
        text: The file's content: one YAML document of the kind OperatorBox.
        file: The name of the file in messages.
        imported: All direct and indirect imports; None rejects a box with imports.

    Raises:
        BoxFileError: The file is invalid; the error holds every error of the file.
    """
    errors, box = _load_file(text, file, imported)
    if errors or box is None:
        raise BoxFileError(errors)
    return box


def find_file_errors(text: str | bytes, *, file: str = "box.yaml") -> tuple[BoxFieldError, ...]:
    """Return the errors of a file in the order of their positions; empty for a valid box.

    Args:
        text: The file's content.
        file: The name of the file in messages.
    """
    return tuple(_load_file(text, file, None)[0])


def _load_file(
    text: str | bytes, file: str, imported: Sequence[ImportedBox] | None
) -> tuple[list[BoxFieldError], OperatorBox | None]:
    sources = parse_source(text, file)
    if not sources:
        empty = YamlSource(file)
        empty.add_error((), f"expected a document of the kind {KIND}, found an empty file")
        return empty.errors, None
    source = sources[0]
    for other in sources[1:]:
        source.add_error_at(other.positions[()], (), "expected one box in a file, found a second document")
    box = BAD
    merge_imports(source, imported)
    if source.value is not None:
        box = build_reader(source).read_struct(OperatorBox, source.value, ())
        _check_document(source, source.value, knows_all=imported is not None)
    ordered = sorted(source.errors, key=lambda error: (error.file != file, error.file, error.line, error.column))
    return ordered, None if box is BAD else box


def _check_document(source: YamlSource, value: Any, *, knows_all: bool) -> None:
    spec = value.get("spec") if isinstance(value, dict) else None
    if not isinstance(spec, dict):
        return
    for index, network in enumerate(_as_list(spec.get("allowedNetworks"))):
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            source.add_error(("spec", "allowedNetworks", index), f"invalid network: {error}")
    crds = spec.get("crds")
    if not isinstance(crds, dict):
        return
    if spec.get("imports") and not knows_all:
        return  # unresolved imports may declare the custom resources that are missing here
    if not crds:
        source.add_error(("spec", "crds"), "expected at least one custom resource")
    for name, entry in crds.items():
        if isinstance(entry, dict):
            _check_entry(source, name, entry, crds)
    _check_kinds(source, crds)
    reads = check_scopes(source, crds)
    check_randomness(source, crds)
    for step in ("cross", "external"):
        for name in crds:
            own = reads.get(f"{name}.{step}", {})
            edges = {
                entry: sorted({read[1] for read in paths if read[0] == step and len(read) > 1})
                for entry, paths in own.items()
            }
            _check_cycle(source, edges, ("spec", "crds", name, step), f"these entries of {step} read each other")
    depends = {name: _list_keys(entry, "dependsOn") for name, entry in crds.items()}
    _check_cycle(source, depends, ("spec", "crds"), "these custom resources wait for each other", "dependsOn")
    observed = {
        name: [
            str(each["crd"])
            for each in _list_entries(entry, "cross")
            if "crd" in each and each.get("wake") is not False and each["crd"] != name
        ]
        for name, entry in crds.items()
    }
    _check_cycle(
        source,
        observed,
        ("spec", "crds"),
        "these custom resources observe each other, so each change triggers the next; set wake: false on one entry",
        "cross",
    )


def _check_entry(source: YamlSource, name: str, entry: dict[str, Any], crds: dict[str, Any]) -> None:
    path: Path = ("spec", "crds", name)
    _check_schema(source, entry, path)
    for at, message in find_reference_errors(entry, path):
        source.add_error(at, message)
    for other in _list_keys(entry, "dependsOn"):
        if other not in crds:
            source.add_error(
                (*path, "dependsOn", other),
                f"expected a custom resource of this file, found {other}{format_hint(other, crds)}",
            )
    _check_names(source, entry, path)
    for index, each in enumerate(_as_list(entry.get("cross"))):
        if isinstance(each, dict):
            _check_cross(source, each, crds, (*path, "cross", index))
    for index, rule in enumerate(_as_list(entry.get("mutation"))):
        if isinstance(rule, dict) and ("default" in rule) == ("override" in rule):
            found = "both" if "default" in rule else "neither"
            source.add_error((*path, "mutation", index), f"expected default or override, found {found}")
    _check_field_paths(source, entry, path)
    normalize = entry.get("normalize")
    if isinstance(normalize, dict):
        made = normalize.get("spec")
        for field in _list_keys(normalize, "types"):
            if isinstance(made, dict) and field not in made:
                source.add_error(
                    (*path, "normalize", "types", field),
                    f"expected a field of normalize.spec, found {field}{format_hint(field, made)}",
                )
    for step in STEPS:
        _check_conditions(source, entry.get(step), (*path, step), are_rules=step == "validation")
    for index, condition in enumerate(_as_list(entry.get("pause"))):
        if isinstance(condition, dict):
            _check_condition(source, condition, (*path, "pause", index), is_rule=False)
    _check_groups(source, entry, path)
    on_delete = entry.get("onDelete")
    for place, group in enumerate(_as_list(on_delete.get("groups")) if isinstance(on_delete, dict) else ()):
        for index, job in enumerate(_as_list(group.get("run")) if isinstance(group, dict) else ()):
            for word in ("waitFor", "readyWhen"):
                if isinstance(job, dict) and word in job:
                    at = (*path, "onDelete", "groups", place, "run", index, word)
                    source.add_error(
                        at, "valid only in onCreate and onReconcile; groups of onDelete wait for each other anyway"
                    )


def _check_field_paths(source: YamlSource, entry: dict[str, Any], path: Path) -> None:
    """Check the paths of written fields: the fields that they may name, and that they are relative."""
    for step, root in (("normalize", "spec"), ("status", "status")):
        for at, field in _iter_written_paths(entry.get(step), (*path, step)):
            if isinstance(field, str) and field.lstrip(".").split(".")[0] == root:
                source.add_error(at, f"expected a path relative to {root}; write {field.lstrip('.')[len(root) + 1 :]}")
            elif step == "status" and isinstance(field, str) and field.lstrip(".").split(".")[0] in RESERVED_STATUS:
                source.add_error(at, "the field is reserved for konverge; use another name")
    for index, rule in enumerate(_as_list(entry.get("mutation"))):
        field = rule.get("field") if isinstance(rule, dict) else None
        if isinstance(field, str) and not has_expression(field) and not _MUTABLE.fullmatch(field):
            at = (*path, "mutation", index, "field")
            source.add_error(at, "expected a field of spec, metadata.labels or metadata.annotations")


def _iter_written_paths(step: Any, path: Path) -> Iterable[tuple[Path, Any]]:
    for field in _list_keys(step, "spec"):
        yield (*path, "spec", field), field
    for index, each in enumerate(_as_list(step.get("fields")) if isinstance(step, dict) else []):
        if isinstance(each, dict):
            yield (*path, "fields", index, "path"), each.get("path")


def _check_schema(source: YamlSource, entry: dict[str, Any], path: Path) -> None:
    resource = entry.get("resource")
    schema = resource.get("schema") if isinstance(resource, dict) else None
    for part, below in schema.items() if isinstance(schema, dict) else ():
        for at, message in find_schema_errors(below, (*path, "resource", "schema", part)):
            source.add_error(at, message)


def _check_kinds(source: YamlSource, crds: dict[str, Any]) -> None:
    """Check that each kind has one entry: two would reconcile the same objects."""
    seen: dict[tuple[str, str], str] = {}
    for name, entry in crds.items():
        resource = entry.get("resource") if isinstance(entry, dict) else None
        if isinstance(resource, dict):
            kind = str(resource.get("apiVersion")).partition("/")[0], str(resource.get("kind"))
            if kind in seen:
                source.add_error(
                    ("spec", "crds", name, "resource", "kind"), f"{kind[1]} is already declared as {seen[kind]}"
                )
            seen.setdefault(kind, name)


def _check_names(source: YamlSource, entry: dict[str, Any], path: Path) -> None:
    """Check that each name of a result in expressions is unique."""
    for step in ("cross", "external"):
        counted: Counter[str] = Counter()
        for index, each in enumerate(_as_list(entry.get(step))):
            name = get_result_name(step, each) if isinstance(each, dict) else ""
            counted[name] += 1
            if name and counted[name] == 2:
                source.add_error((*path, step, index), f"{quote(name)} is already the name of another entry")


def _check_cross(source: YamlSource, each: dict[str, Any], crds: dict[str, Any], path: Path) -> None:
    by_kind = "apiVersion" in each or "kind" in each
    if ("crd" in each) == by_kind:
        source.add_error(path, f"expected crd, or apiVersion and kind; found {'both' if by_kind else 'neither'}")
    elif by_kind and not ("apiVersion" in each and "kind" in each and "as" in each):
        source.add_error(path, "expected apiVersion, kind and as")
    elif not by_kind and isinstance(each["crd"], str) and each["crd"] not in crds:
        source.add_error(
            (*path, "crd"),
            f"expected a custom resource of this file, found {each['crd']}{format_hint(each['crd'], crds)}",
        )
    selector = each.get("selector")
    if not isinstance(selector, dict) or ("name" in selector) == ("matchLabels" in selector):
        has_both = isinstance(selector, dict) and "name" in selector
        source.add_error(
            (*path, "selector") if "selector" in each else path,
            f"expected a selector with either name or matchLabels, found {'both' if has_both else 'neither'}",
        )


def _check_conditions(source: YamlSource, value: Any, path: Path, *, are_rules: bool) -> None:
    """Check all conditions in a value, at any depth."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            at = (*path, index)
            if are_rules and isinstance(each, dict):
                _check_condition(source, each, at, is_rule=True)
                if "unique" in each and has_expression(str(each.get("field"))):
                    source.add_error((*at, "field"), "expected a path for unique, found an expression")
            _check_conditions(source, each, at, are_rules=False)
    elif isinstance(value, dict):
        if "or" in value and "anyOf" in value:
            source.add_error((*path, "anyOf"), "the same list as or; put all conditions into one of them")
        for name, each in value.items():
            if name in CONDITION_LISTS and isinstance(each, list):
                for index, condition in enumerate(each):
                    if isinstance(condition, dict):
                        _check_condition(source, condition, (*path, name, index), is_rule=False)
            elif not is_resource(path):  # its other fields belong to the Kubernetes object
                _check_conditions(source, each, (*path, name), are_rules=False)


def _check_condition(source: YamlSource, declared: dict[str, Any], path: Path, *, is_rule: bool) -> None:
    at = format_path(path)
    if any(error.path.startswith(at) for error in source.errors):
        return  # it is unreadable: errors that follow from that would be duplicates
    error = find_condition_error(declared, is_rule=is_rule)
    if error is not None:
        key, problem = error
        source.add_error((*path, key) if key in declared else path, problem)


def _iter_groups(value: Any, path: Path) -> Iterable[tuple[Path, dict[str, Any]]]:
    if isinstance(value, dict):
        return [(path, value)]
    return [((*path, index), each) for index, each in enumerate(_as_list(value)) if isinstance(each, dict)]


def _check_groups(source: YamlSource, entry: dict[str, Any], path: Path) -> None:
    """Check the names of groups, which become condition types, and the groups that they wait for."""
    groups = [(at, group, step) for step in GROUP_STEPS for at, group in _iter_groups(entry.get(step), (*path, step))]
    names = [str(group["name"]) for _, group, _ in groups if isinstance(group.get("name"), str)]
    earlier: list[str] = []
    for at, group, step in groups:
        own = group.get("name")
        if isinstance(own, str):
            if own in earlier:
                source.add_error((*at, "name"), f"{quote(own)} is already the name of another group")
            elif _UNNAMED.fullmatch(own):
                source.add_error((*at, "name"), f"{own} is reserved for groups without a name; use another name")
        for index, other in enumerate(_as_list(group.get("waitsFor"))):
            if isinstance(other, str) and other not in earlier:
                found = "this group itself" if other == own else "a later group" if other in names else ""
                hint = "" if found else format_hint(other, earlier) or "; no earlier group has a name"
                message = f"expected an earlier group, found {found or quote(other)}{hint}"
                source.add_error((*at, "waitsFor", index), message)
        if isinstance(own, str):
            earlier.append(own)
        _check_group(source, group, at, is_on_create=step == "onCreate")


def _check_group(source: YamlSource, group: dict[str, Any], path: Path, *, is_on_create: bool) -> None:
    for key in KINDS:
        seen: dict[tuple[str, str, str], int] = {}
        for index, each in enumerate(_as_list(group.get(key))):
            if not isinstance(each, dict):
                continue
            at = (*path, key, index)
            if "reconcile" in each and not is_on_create:
                source.add_error(
                    (*at, "reconcile"), "valid only in onCreate; entries of onReconcile are always reconciled"
                )
            for word in ("once", "rotateAfter"):
                if word in each and (not is_on_create or each.get("reconcile")):
                    source.add_error((*at, word), "valid only in onCreate without reconcile: true")
            if not any(word in each for word in ("when", "or", "anyOf", "forEach", "manifest")):
                identity = (str(each.get("name")), str(each.get("namespace")), f"{each.get('kind')}")
                if identity in seen:
                    source.add_error(at, f"the same object as {key}[{seen[identity]}]; give one a name or a condition")
                seen.setdefault(identity, index)


def _check_cycle(source: YamlSource, edges: dict[str, list[str]], path: Path, what: str, below: str = "") -> None:
    cycle = find_cycle(edges)
    if cycle:
        at = (*path, cycle[0], below) if below else path
        source.add_error(at, f"{what}: {' -> '.join(cycle)}")


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _list_entries(entry: Any, step: str) -> list[dict[str, Any]]:
    return [each for each in _as_list(entry.get(step)) if isinstance(each, dict)] if isinstance(entry, dict) else []


def _list_keys(entry: Any, field: str) -> list[str]:
    value = entry.get(field) if isinstance(entry, dict) else None
    return list(value) if isinstance(value, dict) else []
