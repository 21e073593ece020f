"""From the text of a file to a box: read, checked in all respects, or refused with every mistake."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from konverge.box.file.circles import circle_in
from konverge.box.file.groups import reader_of
from konverge.box.file.imports import Imported, merge
from konverge.box.file.kinds import KINDS
from konverge.box.file.mistakes import BoxFileError, Mistake, Path, format_path, hint, shortened
from konverge.box.file.model import KIND, RESERVED_STATUS, OperatorBox
from konverge.box.file.randomness import check_randomness
from konverge.box.file.reading import BAD, has_expression
from konverge.box.file.schemas import schema_mistakes
from konverge.box.file.scopes import GROUP_STEPS, LISTS_OF_CONDITIONS, STEPS, check_scopes, is_resource, result_name
from konverge.box.file.source import Source, read_source
from konverge.box.file.templates import condition_mistake

__all__ = ["find_mistakes", "load_box"]

# What the components of groups without a name are called, with a number where there are several.
_UNNAMED = re.compile(r"(resources|created)[0-9]*")
# The keys of labels and annotations have dots and slashes.
_MUTABLE = re.compile(r"\.?(spec(\.[\w-]+)+|metadata\.(labels|annotations)\.[A-Za-z0-9][\w./-]*)")


def load_box(text: str | bytes, *, file: str = "box.yaml", imported: Sequence[Imported] | None = None) -> OperatorBox:
    """The box of a file.

    Args:
        text: The file's content: one YAML document, of the kind OperatorBox.
        file: What it is called in messages.
        imported: All that it imports, directly or not; None refuses a box that imports something.

    Raises:
        BoxFileError: It cannot be used; the error has every mistake.
    """
    mistakes, box = _loaded(text, file, imported)
    if mistakes or box is None:
        raise BoxFileError(mistakes)
    return box


def find_mistakes(text: str | bytes, *, file: str = "box.yaml") -> tuple[Mistake, ...]:
    """What is wrong in a file, in the order in which it stands there; empty for a box that can be used.

    Args:
        text: The file's content.
        file: What it is called in messages.
    """
    return tuple(_loaded(text, file, None)[0])


def _loaded(
    text: str | bytes, file: str, imported: Sequence[Imported] | None
) -> tuple[list[Mistake], OperatorBox | None]:
    sources = read_source(text, file)
    if not sources:
        empty = Source(file)
        empty.refuse((), f"the file is empty; expected a document of the kind {KIND}")
        return empty.mistakes, None
    source = sources[0]
    for other in sources[1:]:
        source.refuse_at(other.positions[()], (), "a second document; expected one box in a file")
    box = BAD
    merge(source, imported)
    if source.value is not None:
        box = reader_of(source).struct(OperatorBox, source.value, ())
        _check(source, source.value, knows_all=imported is not None)
    ordered = sorted(source.mistakes, key=lambda found: (found.file != file, found.file, found.line, found.column))
    return ordered, None if box is BAD else box


def _check(source: Source, value: Any, *, knows_all: bool) -> None:
    spec = value.get("spec") if isinstance(value, dict) else None
    if not isinstance(spec, dict):
        return
    for index, network in enumerate(_list(spec.get("allowedNetworks"))):
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            source.refuse(("spec", "allowedNetworks", index), f"no network: {error}")
    crds = spec.get("crds")
    if not isinstance(crds, dict):
        return
    if spec.get("imports") and not knows_all:
        return  # what is imported may have the custom resources that would be missed here
    if not crds:
        source.refuse(("spec", "crds"), "expected at least one custom resource")
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
                entry: sorted({read[1] for read in found if read[0] == step and len(read) > 1})
                for entry, found in own.items()
            }
            _refuse_circle(source, edges, ("spec", "crds", name, step), f"these entries of {step} read each other")
    depends = {name: _keys(entry, "dependsOn") for name, entry in crds.items()}
    _refuse_circle(source, depends, ("spec", "crds"), "these custom resources wait for each other", "dependsOn")
    observed = {
        name: [
            str(each["crd"])
            for each in _entries(entry, "cross")
            if "crd" in each and each.get("wake") is not False and each["crd"] != name
        ]
        for name, entry in crds.items()
    }
    _refuse_circle(
        source,
        observed,
        ("spec", "crds"),
        "these custom resources observe each other, so that each change wakes the next; put wake: false on one",
        "cross",
    )


def _check_entry(source: Source, name: str, entry: dict[str, Any], crds: dict[str, Any]) -> None:
    path: Path = ("spec", "crds", name)
    _check_schema(source, entry, path)
    for other in _keys(entry, "dependsOn"):
        if other not in crds:
            source.refuse((*path, "dependsOn", other), f"no custom resource of this file{hint(other, crds)}")
    _check_names(source, entry, path)
    for index, each in enumerate(_list(entry.get("cross"))):
        if isinstance(each, dict):
            _check_cross(source, each, crds, (*path, "cross", index))
    for index, rule in enumerate(_list(entry.get("mutation"))):
        if isinstance(rule, dict) and ("default" in rule) == ("override" in rule):
            found = "both" if "default" in rule else "neither"
            source.refuse((*path, "mutation", index), f"expected default or override, found {found}")
    _check_places(source, entry, path)
    normalize = entry.get("normalize")
    if isinstance(normalize, dict):
        made = normalize.get("spec")
        for field in _keys(normalize, "types"):
            if isinstance(made, dict) and field not in made:
                source.refuse((*path, "normalize", "types", field), f"no field of normalize.spec{hint(field, made)}")
    for step in STEPS:
        _check_conditions(source, entry.get(step), (*path, step), are_rules=step == "validation")
    _check_groups(source, entry, path)
    on_delete = entry.get("onDelete")
    for place, group in enumerate(_list(on_delete.get("groups")) if isinstance(on_delete, dict) else ()):
        for index, job in enumerate(_list(group.get("run")) if isinstance(group, dict) else ()):
            if isinstance(job, dict) and "waitFor" in job:
                at = (*path, "onDelete", "groups", place, "run", index, "waitFor")
                source.refuse(at, "is for onCreate and onReconcile; here each group waits for the last")


def _check_places(source: Source, entry: dict[str, Any], path: Path) -> None:
    """Paths that are written to: where they may lead, and from where they are counted."""
    for step, root in (("normalize", "spec"), ("status", "status")):
        for at, field in _written(entry.get(step), (*path, step)):
            if isinstance(field, str) and field.lstrip(".").split(".")[0] == root:
                source.refuse(at, f"a path here begins under {root}: write {field.lstrip('.')[len(root) + 1 :]}")
            elif step == "status" and isinstance(field, str) and field.lstrip(".").split(".")[0] in RESERVED_STATUS:
                source.refuse(at, "konverge itself writes this; give the field another name")
    for index, rule in enumerate(_list(entry.get("mutation"))):
        field = rule.get("field") if isinstance(rule, dict) else None
        if isinstance(field, str) and not has_expression(field) and not _MUTABLE.fullmatch(field):
            at = (*path, "mutation", index, "field")
            source.refuse(at, "expected a field of spec, or one of metadata.labels or metadata.annotations")


def _written(step: Any, path: Path) -> Iterable[tuple[Path, Any]]:
    for field in _keys(step, "spec"):
        yield (*path, "spec", field), field
    for index, each in enumerate(_list(step.get("fields")) if isinstance(step, dict) else []):
        if isinstance(each, dict):
            yield (*path, "fields", index, "path"), each.get("path")


def _check_schema(source: Source, entry: dict[str, Any], path: Path) -> None:
    resource = entry.get("resource")
    schema = resource.get("schema") if isinstance(resource, dict) else None
    for part, below in schema.items() if isinstance(schema, dict) else ():
        for at, message in schema_mistakes(below, (*path, "resource", "schema", part)):
            source.refuse(at, message)


def _check_kinds(source: Source, crds: dict[str, Any]) -> None:
    """Two entries for one kind would reconcile the same objects."""
    seen: dict[tuple[str, str], str] = {}
    for name, entry in crds.items():
        resource = entry.get("resource") if isinstance(entry, dict) else None
        if isinstance(resource, dict):
            kind = str(resource.get("apiVersion")).partition("/")[0], str(resource.get("kind"))
            if kind in seen:
                source.refuse(("spec", "crds", name, "resource", "kind"), f"{kind[1]} is {seen[kind]} already")
            seen.setdefault(kind, name)


def _check_names(source: Source, entry: dict[str, Any], path: Path) -> None:
    """Names by which expressions find a result: each once."""
    for step in ("cross", "external"):
        counted: Counter[str] = Counter()
        for index, each in enumerate(_list(entry.get(step))):
            name = result_name(step, each) if isinstance(each, dict) else ""
            counted[name] += 1
            if name and counted[name] == 2:
                source.refuse((*path, step, index), f"a second entry is called {shortened(name)}")


def _check_cross(source: Source, each: dict[str, Any], crds: dict[str, Any], path: Path) -> None:
    by_kind = "apiVersion" in each or "kind" in each
    if ("crd" in each) == by_kind:
        source.refuse(path, f"expected crd, or apiVersion and kind; found {'both' if by_kind else 'neither'}")
    elif by_kind and not ("apiVersion" in each and "kind" in each and "as" in each):
        source.refuse(path, "expected apiVersion, kind and as")
    elif not by_kind and isinstance(each["crd"], str) and each["crd"] not in crds:
        source.refuse((*path, "crd"), f"no custom resource of this file: {each['crd']}{hint(each['crd'], crds)}")
    selector = each.get("selector")
    if not isinstance(selector, dict) or ("name" in selector) == ("matchLabels" in selector):
        source.refuse(
            (*path, "selector") if "selector" in each else path, "expected a selector with name or matchLabels"
        )


def _check_conditions(source: Source, value: Any, path: Path, *, are_rules: bool) -> None:
    """Check all conditions in a value, however deep."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            at = (*path, index)
            if are_rules and isinstance(each, dict):
                _check_condition(source, each, at, is_rule=True)
                if "unique" in each and has_expression(str(each.get("field"))):
                    source.refuse((*at, "field"), "unique asks for a field of every object: expected a path")
            _check_conditions(source, each, at, are_rules=False)
    elif isinstance(value, dict):
        if "or" in value and "anyOf" in value:
            source.refuse((*path, "anyOf"), "another name for or, which stands here too; put them together")
        for name, each in value.items():
            if name in LISTS_OF_CONDITIONS and isinstance(each, list):
                for index, condition in enumerate(each):
                    if isinstance(condition, dict):
                        _check_condition(source, condition, (*path, name, index), is_rule=False)
            elif not is_resource(path):  # what else it has is Kubernetes'
                _check_conditions(source, each, (*path, name), are_rules=False)


def _check_condition(source: Source, declared: dict[str, Any], path: Path, *, is_rule: bool) -> None:
    at = format_path(path)
    if any(mistake.path.startswith(at) for mistake in source.mistakes):
        return  # it cannot be read already; what follows from that would be told twice
    found = condition_mistake(declared, is_rule=is_rule)
    if found is not None:
        key, problem = found
        source.refuse((*path, key) if key in declared else path, problem)


def _groups(value: Any, path: Path) -> Iterable[tuple[Path, dict[str, Any]]]:
    if isinstance(value, dict):
        return [(path, value)]
    return [((*path, index), each) for index, each in enumerate(_list(value)) if isinstance(each, dict)]


def _check_groups(source: Source, entry: dict[str, Any], path: Path) -> None:
    """Names of groups, of which each makes a condition, and what they wait for."""
    groups = [(at, group, step) for step in GROUP_STEPS for at, group in _groups(entry.get(step), (*path, step))]
    names = [str(group["name"]) for _, group, _ in groups if isinstance(group.get("name"), str)]
    earlier: list[str] = []
    for at, group, step in groups:
        own = group.get("name")
        if isinstance(own, str):
            if own in earlier:
                source.refuse((*at, "name"), f"a second group is called {shortened(own)}")
            elif _UNNAMED.fullmatch(own):
                source.refuse((*at, "name"), f"{own} is what a group without a name is called; take another name")
        for index, other in enumerate(_list(group.get("waitsFor"))):
            if isinstance(other, str) and other not in earlier:
                found = "this group itself" if other == own else "a later group" if other in names else ""
                near = "; a group can wait for earlier ones alone" if found else hint(other, earlier)
                source.refuse((*at, "waitsFor", index), f"{found or 'no earlier group'}{near or '; none has a name'}")
        if isinstance(own, str):
            earlier.append(own)
        _check_group(source, group, at, is_on_create=step == "onCreate")


def _check_group(source: Source, group: dict[str, Any], path: Path, *, is_on_create: bool) -> None:
    for key in KINDS:
        seen: dict[tuple[str, str, str], int] = {}
        for index, each in enumerate(_list(group.get(key))):
            if not isinstance(each, dict):
                continue
            at = (*path, key, index)
            if "reconcile" in each and not is_on_create:
                source.refuse((*at, "reconcile"), "is for onCreate: what stands in onReconcile is always kept so")
            for word in ("once", "rotateAfter"):
                if word in each and (not is_on_create or each.get("reconcile")):
                    source.refuse((*at, word), "is for onCreate without reconcile: true, where values stay as made")
            if not any(word in each for word in ("when", "or", "anyOf", "forEach", "manifest")):
                identity = (str(each.get("name")), str(each.get("namespace")), f"{each.get('kind')}")
                if identity in seen:
                    source.refuse(at, f"the same object as {key}[{seen[identity]}]; give it a name or a condition")
                seen.setdefault(identity, index)


def _refuse_circle(source: Source, edges: dict[str, list[str]], path: Path, what: str, below: str = "") -> None:
    circle = circle_in(edges)
    if circle:
        at = (*path, circle[0], below) if below else path
        source.refuse(at, f"{what}: {' -> '.join(circle)}")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _entries(entry: Any, step: str) -> list[dict[str, Any]]:
    return [each for each in _list(entry.get(step)) if isinstance(each, dict)] if isinstance(entry, dict) else []


def _keys(entry: Any, field: str) -> list[str]:
    value = entry.get(field) if isinstance(entry, dict) else None
    return list(value) if isinstance(value, dict) else []
