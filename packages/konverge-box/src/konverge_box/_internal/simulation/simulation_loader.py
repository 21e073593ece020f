"""From a simulation file to a simulation with its box and objects, or every error with its position.

``{{ namespace }}`` in a string stands for the namespace of the simulation; other expressions are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import yaml

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.kube.yaml_loader import load_yaml_documents
from konverge.errors import ConfigurationError
from konverge_box._internal.file import KINDS, BoxFieldError, BoxFileError, OperatorBox
from konverge_box._internal.file.struct_reader import BAD, StructReader
from konverge_box._internal.file.validation_errors import Path, format_hint, format_path
from konverge_box._internal.file.yaml_source import MAX_BYTES, YamlSource, parse_source
from konverge_box._internal.providers import ProviderPool
from konverge_box._internal.runtime.box_validation import load_valid_box
from konverge_box._internal.simulation.box_references import BoxReferences
from konverge_box._internal.simulation.simulation_model import KIND, ExpectedObject, ObjectName, Patch, Simulation

__all__ = ["LoadedSimulation", "find_simulation_errors", "load_simulation"]

_NAMESPACE = re.compile(r"\{\{\s*namespace\s*\}\}")
_COMMON = {
    "Event": GroupVersionKind("", "v1", "Event"),
    "Lease": GroupVersionKind("coordination.k8s.io", "v1", "Lease"),
}


@dataclass(frozen=True)
class LoadedSimulation:
    """A valid simulation.

    Args:
        simulation: The content of the file.
        box: Its box.
        box_file: The file of the box.
        given: The initial objects.
        applied: The objects that each step applies.
        kinds: The kinds that need no API version.
    """

    simulation: Simulation
    box: OperatorBox
    box_file: File
    given: tuple[Object, ...]
    applied: tuple[tuple[Object, ...], ...]
    kinds: dict[str, GroupVersionKind]

    def find_gvk(self, named: ObjectName | Patch | ExpectedObject) -> GroupVersionKind:
        """Return the group, version and kind of a named object."""
        if named.api_version is not None:
            return GroupVersionKind.parse(named.api_version, named.kind)
        return self.kinds[named.kind]


def load_simulation(file: File, *, namespace: str = "default", pool: ProviderPool | None = None) -> LoadedSimulation:
    """Load the simulation of a file, with its box and the files that it names, relative to it.

    Args:
        file: The file.
        namespace: The namespace of the simulation.
        pool: The providers that the box may use (default: those of installed packages).

    Raises:
        BoxFileError: The simulation or its box is invalid; the error holds every error of one of them.
        konverge.errors.ConfigurationError: A file cannot be read.
    """
    errors, loaded = _load_file(_read_file(file), file, namespace, pool)
    if errors or loaded is None:
        raise BoxFileError(errors)
    return loaded


def find_simulation_errors(
    file: File, *, text: bytes | None = None, namespace: str = "default"
) -> tuple[BoxFieldError, ...]:
    """Return the errors of a simulation file, or else of its box; empty for a valid simulation.

    Args:
        file: The file.
        text: Its content; None to read the file.
        namespace: The namespace of the simulation.

    Raises:
        konverge.errors.ConfigurationError: The file or its box cannot be read.
    """
    try:
        return tuple(_load_file(_read_file(file) if text is None else text, file, namespace, None)[0])
    except BoxFileError as error:
        return error.errors


def _load_file(
    text: bytes, file: File, namespace: str, pool: ProviderPool | None
) -> tuple[list[BoxFieldError], LoadedSimulation | None]:
    sources = parse_source(text, str(file))
    source = sources[0] if sources else YamlSource(str(file))
    if not sources:
        source.add_error((), f"expected a document of the kind {KIND}, found an empty file")
    for other in sources[1:]:
        source.add_error_at(other.positions[()], (), "expected one simulation in a file, found a second document")
    simulation = BAD
    if source.value is not None:
        simulation = StructReader(source, {}).read_struct(Simulation, _replace_namespace(source.value, namespace), ())
    if simulation is BAD or source.errors:
        return _sort_errors(source), None
    spec = simulation.spec
    box_file = file.parent / spec.box
    box = load_valid_box(_read_file(box_file), file=str(box_file), pool=pool)
    kinds = _collect_kinds(box)
    given = _read_objects(source, spec.given, ("spec", "given"), file.parent)
    applied = tuple(
        _read_objects(source, step.apply, ("spec", "steps", index, "apply"), file.parent)
        for index, step in enumerate(spec.steps)
    )
    for path, kind in _iter_kind_names(simulation):
        if kind not in kinds:
            near = format_hint(kind, kinds)
            source.add_error(
                (*path, "kind"), f"expected a kind of the box or of Kubernetes; add apiVersion for other kinds{near}"
            )
    calls = {call.name for declared in box.spec.crds.values() for call in declared.external}
    places: list[tuple[Path, Any]] = [(("spec",), spec.answers)]
    places += [(("spec", "steps", index), step.answers) for index, step in enumerate(spec.steps)]
    for path, answers in places:
        for name in answers:
            if name not in calls:
                source.add_error(
                    (*path, "answers", name), f"expected a call of the box, found {name}{format_hint(name, calls)}"
                )
    if source.errors:
        return _sort_errors(source), None
    loaded = LoadedSimulation(simulation, box, box_file, given, applied, kinds)
    _check_references(source, loaded)
    return (_sort_errors(source), None) if source.errors else ([], loaded)


def _check_references(source: YamlSource, loaded: LoadedSimulation) -> None:
    """Check the custom resources, patches and expectations of a simulation against its box."""
    references = BoxReferences(loaded.box)
    spec = loaded.simulation.spec
    lists: list[tuple[Path, tuple[dict[str, Any] | str, ...], tuple[Object, ...]]] = [
        (("spec", "given"), spec.given, loaded.given)
    ]
    for index, step in enumerate(spec.steps):
        path: Path = ("spec", "steps", index)
        lists.append(((*path, "apply"), step.apply, loaded.applied[index]))
        for place, patch in enumerate(step.patch):
            gvk = loaded.find_gvk(patch)
            references.add_conditions(gvk, patch.merge)
            for at, message in references.find_object_errors(gvk, patch.merge, (*path, "patch", place, "merge")):
                source.add_error(at, message)
    for at, listed, objects in lists:
        inline = {id(each): (*at, index) for index, each in enumerate(listed)}
        for obj in objects:
            gvk = GroupVersionKind.of(obj)
            references.add_conditions(gvk, obj)
            place_of_obj = inline.get(id(obj))
            for field, message in references.find_object_errors(gvk, obj, place_of_obj or ()):
                if place_of_obj is None:  # in another file
                    name = f"{gvk.kind}/{obj['metadata']['name']}"
                    source.add_error(at, f"{name}: {format_path(field)}: {message}")
                else:
                    source.add_error(field, message)
    for index, step in enumerate(spec.steps):
        for place, expected in enumerate(step.expect.objects if step.expect is not None else ()):
            path = ("spec", "steps", index, "expect", "objects", place)
            for at, message in references.find_expectation_errors(loaded.find_gvk(expected), expected, path):
                source.add_error(at, message)


def _sort_errors(source: YamlSource) -> list[BoxFieldError]:
    return sorted(source.errors, key=lambda error: (error.line, error.column))


def _collect_kinds(box: OperatorBox) -> dict[str, GroupVersionKind]:
    kinds = dict(_COMMON)
    kinds |= {kind.gvk.kind: kind.gvk for kind in KINDS.values() if kind.gvk is not None}
    made = (resource.gvk for declared in box.spec.crds.values() for resource in declared.resources)
    kinds |= {gvk.kind: gvk for gvk in made}
    return kinds | {declared.resource.gvk.kind: declared.resource.gvk for declared in box.spec.crds.values()}


def _iter_kind_names(simulation: Simulation) -> Iterator[tuple[Path, str]]:
    for index, step in enumerate(simulation.spec.steps):
        path: Path = ("spec", "steps", index)
        expect = step.expect
        lists: list[tuple[Path, tuple[ObjectName | Patch | ExpectedObject, ...]]] = [
            ((*path, "patch"), step.patch),
            ((*path, "delete"), step.delete),
        ]
        if expect is not None:
            lists += [((*path, "expect", "objects"), expect.objects), ((*path, "expect", "absent"), expect.absent)]
        for at, named in lists:
            for place, each in enumerate(named):
                if each.api_version is None:
                    yield (*at, place), each.kind


def _read_objects(
    source: YamlSource, listed: tuple[dict[str, Any] | str, ...], path: Path, folder: File
) -> tuple[Object, ...]:
    objects: list[Object] = []
    for index, each in enumerate(listed):
        at = (*path, index)
        if isinstance(each, str):
            try:
                documents = _read_documents(folder / each)
            except (ConfigurationError, yaml.YAMLError, ValueError) as error:
                source.add_error(at, " ".join(str(error).split()))
                continue
        else:
            documents = [each]
        for obj in documents:
            if _is_object(obj):
                objects.append(obj)
            else:
                source.add_error(at, "expected an object with apiVersion, kind and metadata.name")
    return tuple(objects)


def _is_object(value: Any) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("apiVersion", "kind")):
        return False
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _read_documents(file: File) -> list[Any]:
    text = _read_file(file)
    return [each for each in load_yaml_documents(text) if each is not None]


def _replace_namespace(value: Any, namespace: str) -> Any:
    """Return the value with the namespace in all its strings."""
    return _map_strings(value, lambda text: _NAMESPACE.sub(namespace, text))


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _map_strings(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_map_strings(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


def _read_file(file: File) -> bytes:
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
    return text
