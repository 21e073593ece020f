"""From the text of a Katalog to the text of a box, with findings and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from konverge._internal.kube.name_validation import validate_dns_subdomain
from konverge_box._internal.file.loader import find_file_errors
from konverge_box._internal.file.model import API_VERSION, KIND
from konverge_box._internal.file.validation_errors import BoxFileError
from konverge_box._internal.file.yaml_source import YamlSource, parse_source
from konverge_box._internal.katalog.call_networks import list_call_networks
from konverge_box._internal.katalog.custom_resource_conversion import (
    KatalogContext,
    convert_custom_resource,
    to_identifier,
)
from konverge_box._internal.katalog.findings import (
    ConversionNote,
    Finding,
    FindingCollector,
    FindingReason,
    KatalogFields,
)
from konverge_box._internal.katalog.yaml_writer import write_yaml

__all__ = ["KatalogImport", "import_katalog"]

_ONE_FILE = "a box is one file"
_TOP = {
    "lifecycle": FindingReason("the maturity of the Katalog", "a box has none", "add it to your documentation"),
    "policy": FindingReason("a policy for imports", "a box has none", "remove it"),
    "imports": FindingReason("imports", _ONE_FILE, "import each Katalog, and merge the boxes"),
    "security": FindingReason("webhooks and protection", "a box serves none", "use admission policies of the cluster"),
    "crossAccess": FindingReason(
        "a limit on observers", "all custom resources of a box can observe each other", "use another box"
    ),
    "gateway": FindingReason("a gateway", "a box has none", "apply custom resources with any client"),
    "publish": FindingReason("publication", "a box is a file", "keep it in git, or in a ConfigMap"),
    "notification": FindingReason("notifications", "a box sends none", "alert on metrics or events"),
    "profiles": FindingReason("profiles", "konverge has none", "write their values at each use"),
}
_METADATA = {
    key: FindingReason("a property of the Katalog", "a box does not use it", "set it as a label of the box")
    for key in ("namespace", "clusterName", "createdBy", "projects")
}
_ABOUT = ("description", "version", "author", "license", "tags")


class KatalogImport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the conversion of a Katalog.

    Args:
        text: The box as YAML; empty if nothing could be converted.
        listed: The parts of the Katalog that the box does not contain.
        decisions: The parts that behave slightly differently in the box.
    """

    text: str
    listed: tuple[Finding, ...]
    decisions: tuple[ConversionNote, ...]


def import_katalog(
    text: str | bytes, *, file: str = "katalog.yaml", read: Callable[[str], bytes | None] | None = None
) -> KatalogImport:
    """Convert a Katalog to a box. Each part of it is converted, or is listed.

    Args:
        text: The Katalog's content.
        file: The name of the Katalog in messages.
        read: Returns the content of a file that the Katalog names; by default no such file is read.

    Raises:
        BoxFileError: The text is invalid YAML, or contains no Katalog.
    """
    sources = parse_source(text, file)
    chosen = next((each for each in sources if _find_kind(each) == "Katalog"), None)
    if chosen is None:
        first = sources[0] if sources else YamlSource(file)
        if not first.errors:
            first.add_error((), f"expected a document of the kind Katalog, found {_find_kind(first) or 'none'}")
        raise BoxFileError(first.errors)
    notes = FindingCollector(chosen)
    findings = [_to_finding(each) for each in chosen.errors]
    for other in sources:
        if other is not chosen:
            notes.add_finding(
                (),
                FindingReason(
                    f"a document of the kind {_find_kind(other) or 'none'}", _ONE_FILE, "import it by itself"
                ),
            )
    box, comments = _convert_box(KatalogFields(notes, chosen.value, ()), read or (lambda name: None))
    findings += notes.findings
    converted = ""
    if box["spec"]["crds"]:
        converted = write_yaml(box, comments)
        findings += (
            Finding(
                file=file,
                line=0,
                column=0,
                path=error.path,
                what="the resulting box",
                why=f"it is invalid: {error.message}",
                instead="change it in the box",
            )
            for error in find_file_errors(converted, file=file)
        )
    return KatalogImport(text=converted, listed=tuple(findings), decisions=tuple(notes.decisions))


def _find_kind(source: YamlSource) -> str:
    kind = source.value.get("kind") if isinstance(source.value, dict) else None
    return kind if isinstance(kind, str) else ""


def _to_finding(error: Any) -> Finding:
    return Finding(
        file=error.file,
        line=error.line,
        column=error.column,
        path=error.path or "the file",
        what="a value",
        why=error.message,
        instead="change it in the Katalog, and import again",
    )


def _convert_box(
    fields: KatalogFields, read: Callable[[str], bytes | None]
) -> tuple[dict[str, Any], dict[tuple[str | int, ...], str]]:
    fields.take("apiVersion")
    fields.take("kind")
    metadata, about = _convert_metadata(fields.take_mapping("metadata"))
    spec = fields.take_mapping("spec")
    functions = _convert_functions(fields) | _convert_functions(spec)
    settings = _convert_providers(fields)
    if "imports" in spec:
        spec.take("imports")
        spec.notes.add_finding(spec.build_path("imports"), _TOP["imports"])
    entries = _take_entries(spec)
    names = _build_names(list(entries))
    finalizers = tuple(spec.take_texts("finalizers"))
    around = KatalogContext(names, read, functions, finalizers)
    found: dict[str, Any] = {}
    comments: dict[tuple[str | int, ...], str] = {("apiVersion",): about} if about else {}
    for name, each in entries.items():
        description = each.peek("description")
        before = len(fields.notes.decisions)
        made = convert_custom_resource(each, around)
        if made is None:
            continue
        found[names[name]] = made
        comment = [str(description)] if description else []
        comment += [f"{decision.path}: {decision.text}" for decision in fields.notes.decisions[before:]]
        if names[name] != name:
            comment.append(f"name in the Katalog: {name}")
        if comment:
            comments["spec", "crds", names[name]] = "\n".join(comment)
    _break_cycles(found)
    networks = list_call_networks(found, names, fields.notes)
    _report_shared_names(found, names, fields.notes)
    spec.report_remaining()
    fields.report_remaining(_TOP)
    box: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"crds": found}}
    if settings:
        box["spec"]["providers"] = settings
    if networks:
        box["spec"]["allowedNetworks"] = networks
    return box, comments


def _build_names(given: list[str]) -> dict[str, str]:
    """Return the name of each custom resource in the box: unique, and valid in expressions."""
    found: dict[str, str] = {}
    for name in given:
        wanted = made = to_identifier(name)
        number = 2
        while made in found.values():
            made = f"{wanted[:60]}{number}"
            number += 1
        found[name] = made
    return found


def _convert_metadata(fields: KatalogFields) -> tuple[dict[str, Any], str]:
    name = fields.take_text("name") or "katalog"
    if validate_dns_subdomain(name):
        fields.add_note("name", "a box has the name of a Kubernetes object")
        name = to_identifier(name).lower()
    about = []
    for key in _ABOUT:
        value = fields.take(key)
        if value is not None:
            about.append(f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    fields.report_remaining(_METADATA)
    return {"name": name}, "\n".join(about)


def _take_entries(spec: KatalogFields) -> dict[str, KatalogFields]:
    """Take the custom resources: a mapping by name, or a list whose items have a name or a kind."""
    if not spec.is_list("crds"):
        crds = spec.take_mapping("crds")
        return {name: crds.take_mapping(name) for name in crds.list_remaining()}
    found: dict[str, KatalogFields] = {}
    for each in spec.take_items("crds"):
        api = each.peek("apiTypes")
        name = each.take_text("name") or (api.get("kind") if isinstance(api, dict) else None)
        if isinstance(name, str) and name not in found:
            found[name] = each
        else:
            why = "it has no name" if not isinstance(name, str) else f"another one has the name {name[:40]!r}"
            each.notes.add_finding(each.path, FindingReason("a custom resource", why, "name it"))
    return found


def _convert_functions(holder: KatalogFields) -> dict[str, str]:
    """Convert the functions that the Katalog defines; each is inserted where it is called."""
    found: dict[str, str] = {}
    fields = holder if holder.is_list("notes") else holder.take_mapping("notes")
    for each in fields.take_items("notes" if fields is holder else "functions"):
        name, expression = each.take_text("name"), each.take_text("expression", may_be_template=True)
        each.take("description")
        each.report_remaining()
        if name and expression:
            found[name] = expression
            each.add_note("name", "the note is inserted where it is called")
        else:
            each.notes.add_finding(each.path, FindingReason("a note", "it has no name or no expression", "remove it"))
    if fields is not holder:
        fields.report_remaining()
    return found


def _convert_providers(fields: KatalogFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in fields.take_items("providers"):
        name = each.take_text("name") or ""
        required = each.take_typed("required", bool)
        settings: dict[str, Any] = {}
        auth = each.take_mapping("auth")
        for key in auth.list_remaining():
            value = auth.take(key) if not isinstance(auth.peek(key), str) else auth.take_text(key)
            if isinstance(value, str) and value.startswith("$"):
                auth.reject_field(
                    key, "a setting from the environment", "settings of a box are values or Secrets", "use secretRefs"
                )
            elif value is not None:
                settings[key] = value
        each.report_remaining(
            {
                word: FindingReason("a plug-in", "plug-ins of konverge are Python packages", "install one with pip")
                for word in ("version", "library")
            }
        )
        if not name:
            each.notes.add_finding(each.path, FindingReason("a provider", "it has no name", "name it"))
            continue
        found[to_identifier(name)] = {
            **({} if required is None else {"required": required}),
            **({"settings": settings} if settings else {}),
        }
    return found


def _report_shared_names(crds: dict[str, Any], names: dict[str, str], notes: FindingCollector) -> None:
    """Add a finding for objects of one kind and name that several custom resources create."""
    owners: dict[tuple[str, ...], str] = {}
    for name, here in names.items():
        for key in dict.fromkeys(_list_objects(crds.get(here, {}))):
            other = owners.setdefault(key, name)
            if other != name:
                kind, text = key[1], key[-1]
                why = (
                    f"{other} declares {kind} with the same name, {text[:60]}, so {other} and {name} of one name in "
                    "one namespace would have one object, and it belongs to the first"
                )
                notes.add_finding(
                    ("spec", "crds", name), FindingReason(f"{kind} of {name}", why, "give them another name in the box")
                )


def _list_objects(crd: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the API, the kind, the namespace and the name of each object of a custom resource, as written."""
    for step in ("onCreate", "onReconcile"):
        for kind, entries in crd.get(step, {}).items():
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict) and isinstance(entry.get("name", ""), str) and kind not in ("when", "or"):
                    api = f"{entry.get('apiVersion', '')}/{entry.get('kind', '')}"
                    yield api, kind, str(entry.get("namespace", "")), entry.get("name", "{{ metadata.name }}")


def _break_cycles(crds: dict[str, Any]) -> None:
    """Set ``wake: false`` on the observation that closes a cycle of custom resources that observe each other."""
    edges: dict[str, set[str]] = {name: set() for name in crds}
    for name, each in crds.items():
        for observation in each.get("cross", []):
            other = observation.get("crd")
            if other == name or other not in edges:
                continue
            if _has_path(edges, other, name):
                observation["wake"] = False
            else:
                edges[name].add(other)


def _has_path(edges: dict[str, set[str]], start: str, goal: str) -> bool:
    seen, left = set[str](), [start]
    while left:
        name = left.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            left += edges[name]
    return False
