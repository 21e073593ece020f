"""From the text of a Katalog to the text of a box, and what is to be told of the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from konverge.box.file.loading import find_mistakes
from konverge.box.file.mistakes import BoxFileError
from konverge.box.file.model import API_VERSION, KIND
from konverge.box.file.source import Source, read_source
from konverge.box.katalog.entries import Surroundings, entry, identifier
from konverge.box.katalog.findings import Decision, Fields, Finding, Notes, Why
from konverge.box.katalog.writing import written
from konverge.kube.names import dns_subdomain_mistakes

__all__ = ["Imported", "import_katalog"]

_ONE_FILE = "a box is one file"
_TOP = {
    "lifecycle": Why("the maturity of the Katalog", "a box has none", "write it into your documentation"),
    "policy": Why("a policy for imports", "a box imports nothing", "remove it"),
    "imports": Why("imports", _ONE_FILE, "import each Katalog, and join the boxes"),
    "security": Why("webhooks and protection", "a box serves none", "use admission policies of the cluster"),
    "crossAccess": Why("who may observe", "all of a file can", "put it into another box"),
    "gateway": Why("a gateway", "a box has none", "apply custom resources with any client"),
    "publish": Why("publishing", "a box is a file", "keep it in git, or in a ConfigMap"),
    "notification": Why("messages to people", "a box sends none", "alert on metrics or events"),
    "profiles": Why("profiles", "konverge has none", "write their values where they are used"),
}
_METADATA = {
    key: Why("a fact about the Katalog", "a box does not need it", "write it as a label of the box")
    for key in ("namespace", "clusterName", "createdBy", "projects")
}
_ABOUT = ("description", "version", "author", "license", "tags")


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a Katalog.

    Args:
        text: The box as YAML; empty where nothing could be carried over.
        listed: What the box does not have.
        decisions: What it has, and what is not quite the same.
    """

    text: str
    listed: tuple[Finding, ...]
    decisions: tuple[Decision, ...]


def import_katalog(
    text: str | bytes, *, file: str = "katalog.yaml", read: Callable[[str], bytes | None] | None = None
) -> Imported:
    """A Katalog as a box. Everything in it is carried over, or is listed.

    Args:
        text: The Katalog's content.
        file: What it is called in messages.
        read: Gives the content of a file that the Katalog names; without, no such file is read.

    Raises:
        BoxFileError: It is no YAML, or has no Katalog.
    """
    sources = read_source(text, file)
    chosen = next((each for each in sources if _kind(each) == "Katalog"), None)
    if chosen is None:
        found = sources[0] if sources else Source(file)
        if not found.mistakes:
            found.refuse((), f"expected a document of the kind Katalog, found {_kind(found) or 'none'}")
        raise BoxFileError(found.mistakes)
    notes = Notes(chosen)
    findings = [_of_source(each) for each in chosen.mistakes]
    for other in sources:
        if other is not chosen:
            notes.list((), Why(f"a document of the kind {_kind(other) or 'none'}", _ONE_FILE, "import it by itself"))
    box, comments = _box(Fields(notes, chosen.value, ()), read or (lambda name: None))
    findings += notes.findings
    made = ""
    if box["spec"]["crds"]:
        made = written(box, comments)
        findings += (
            Finding(
                file=file,
                line=0,
                column=0,
                path=mistake.path,
                what="what came out",
                why=f"the box would be refused: {mistake.message}",
                instead="change it in the box",
            )
            for mistake in find_mistakes(made, file=file)
        )
    return Imported(text=made, listed=tuple(findings), decisions=tuple(notes.decisions))


def _kind(source: Source) -> str:
    kind = source.value.get("kind") if isinstance(source.value, dict) else None
    return kind if isinstance(kind, str) else ""


def _of_source(mistake: Any) -> Finding:
    return Finding(
        file=mistake.file,
        line=mistake.line,
        column=mistake.column,
        path=mistake.path or "the file",
        what="a value",
        why=mistake.message,
        instead="change it there, and import again",
    )


def _box(
    fields: Fields, read: Callable[[str], bytes | None]
) -> tuple[dict[str, Any], dict[tuple[str | int, ...], str]]:
    fields.take("apiVersion")
    fields.take("kind")
    metadata, about = _metadata(fields.below("metadata"))
    functions = _functions(fields.below("notes"))
    settings = _providers(fields)
    spec = fields.below("spec")
    if "imports" in spec:
        spec.take("imports")
        spec.notes.list(spec.at("imports"), _TOP["imports"])
    crds = spec.below("crds")
    names = _names(crds.names())
    finalizers = tuple(str(each) for each in spec.typed("finalizers", list) or [])
    around = Surroundings(names, read, functions, finalizers)
    found: dict[str, Any] = {}
    comments: dict[tuple[str | int, ...], str] = {("apiVersion",): about} if about else {}
    for name in crds.names():
        each = crds.below(name)
        description = each.peek("description")
        before = len(fields.notes.decisions)
        made = entry(each, around)
        if made is None:
            continue
        found[names[name]] = made
        said = [str(description)] if description else []
        said += [f"{decision.path}: {decision.text}" for decision in fields.notes.decisions[before:]]
        if names[name] != name:
            said.append(f"is called {name} there")
        if said:
            comments["spec", "crds", names[name]] = "\n".join(said)
    _break_circles(found)
    spec.close()
    fields.close(_TOP)
    box: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"crds": found}}
    if settings:
        box["spec"]["providers"] = settings
    return box, comments


def _names(given: list[str]) -> dict[str, str]:
    """What each is called here: a name that expressions can use, each once."""
    found: dict[str, str] = {}
    for name in given:
        wanted = made = identifier(name)
        number = 2
        while made in found.values():
            made = f"{wanted[:60]}{number}"
            number += 1
        found[name] = made
    return found


def _metadata(fields: Fields) -> tuple[dict[str, Any], str]:
    name = fields.text("name") or "katalog"
    if dns_subdomain_mistakes(name):
        fields.decide("name", "names are those of Kubernetes' objects")
        name = identifier(name).lower()
    said = []
    for key in _ABOUT:
        value = fields.take(key)
        if value is not None:
            said.append(f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    fields.close(_METADATA)
    return {"name": name}, "\n".join(said)


def _functions(fields: Fields) -> dict[str, str]:
    """The Katalog's own functions, which are written out where they are called."""
    found: dict[str, str] = {}
    for each in fields.items("functions"):
        name, expression = each.text("name"), each.text("expression")
        each.take("description")
        each.close()
        if name and expression:
            found[name] = expression
            each.decide("name", "the note is written out where it is called")
        else:
            each.notes.list(each.path, Why("a note", "it has no name or no expression", "remove it"))
    fields.close()
    return found


def _providers(fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in fields.items("providers"):
        name = each.text("name") or ""
        required = each.typed("required", bool)
        settings: dict[str, Any] = {}
        auth = each.below("auth")
        for key in auth.names():
            value = auth.take(key)
            if isinstance(value, str) and value.startswith("$"):
                auth.refuse(key, "a setting out of the environment", "settings are values or Secrets", "use secretRefs")
            else:
                settings[key] = value
        each.close(
            {
                word: Why("which plug-in it is", "plug-ins are Python packages", "install one with pip")
                for word in ("version", "library")
            }
        )
        if not name:
            each.notes.list(each.path, Why("a provider", "it has no name", "name it"))
            continue
        found[identifier(name)] = {
            **({} if required is None else {"required": required}),
            **({"settings": settings} if settings else {}),
        }
    return found


def _break_circles(crds: dict[str, Any]) -> None:
    """Where custom resources observe each other, let the observation that closes the circle wake nobody."""
    edges: dict[str, set[str]] = {name: set() for name in crds}
    for name, each in crds.items():
        for observation in each.get("cross", []):
            other = observation.get("crd")
            if other == name or other not in edges:
                continue
            if _reaches(edges, other, name):
                observation["wake"] = False
            else:
                edges[name].add(other)


def _reaches(edges: dict[str, set[str]], start: str, goal: str) -> bool:
    seen, left = set[str](), [start]
    while left:
        name = left.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            left += edges[name]
    return False
