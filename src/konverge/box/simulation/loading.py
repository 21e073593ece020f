"""From a simulation file to a simulation with its box and its objects: all of it, or every mistake with its place.

``{{ namespace }}`` in a text is the namespace in which the simulation runs; there are no other expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import yaml

from konverge.box.file import KINDS, BoxFileError, Mistake, OperatorBox
from konverge.box.file.mistakes import Path, hint
from konverge.box.file.reading import BAD, Reader
from konverge.box.file.source import MAX_BYTES, Source, read_source
from konverge.box.providers import ProviderPool
from konverge.box.running.checking import load_checked_box
from konverge.box.simulation.model import KIND, ExpectedObject, ObjectName, Patch, Simulation
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind, Object
from konverge.kube.yaml_depth import check_yaml_depth
from konverge.kube.yaml_loader import ObjectLoader

__all__ = ["LoadedSimulation", "find_simulation_mistakes", "load_simulation"]

_NAMESPACE = re.compile(r"\{\{\s*namespace\s*\}\}")
_COMMON = {
    "Event": GroupVersionKind("", "v1", "Event"),
    "Lease": GroupVersionKind("coordination.k8s.io", "v1", "Lease"),
}


@dataclass(frozen=True)
class LoadedSimulation:
    """A simulation that can be run.

    Args:
        simulation: What the file says.
        box: Its box.
        box_file: Where the box is.
        given: The objects that are there at the beginning.
        applied: Of each step, the objects that it applies.
        kinds: The kinds that may be named without their API version.
    """

    simulation: Simulation
    box: OperatorBox
    box_file: File
    given: tuple[Object, ...]
    applied: tuple[tuple[Object, ...], ...]
    kinds: dict[str, GroupVersionKind]

    def gvk(self, named: ObjectName | Patch | ExpectedObject) -> GroupVersionKind:
        """The kind in full."""
        if named.api_version is not None:
            return GroupVersionKind.parse(named.api_version, named.kind)
        return self.kinds[named.kind]


def load_simulation(file: File, *, namespace: str = "default", pool: ProviderPool | None = None) -> LoadedSimulation:
    """The simulation of a file, with its box and the files that it names, which are looked for beside it.

    Args:
        file: The file.
        namespace: Where the simulation runs.
        pool: The providers that the box may use; those of installed packages when not given.

    Raises:
        BoxFileError: The simulation or its box cannot be used; the error has every mistake of the one or the other.
        konverge.errors.ConfigurationError: A file cannot be read.
    """
    mistakes, loaded = _loaded(_read(file), file, namespace, pool)
    if mistakes or loaded is None:
        raise BoxFileError(mistakes)
    return loaded


def find_simulation_mistakes(file: File, *, namespace: str = "default") -> tuple[Mistake, ...]:
    """What is wrong in a simulation file, or else in its box; empty for one that can be run.

    Args:
        file: The file.
        namespace: Where the simulation runs.

    Raises:
        konverge.errors.ConfigurationError: The file or its box cannot be read.
    """
    try:
        return tuple(_loaded(_read(file), file, namespace, None)[0])
    except BoxFileError as error:
        return error.mistakes


def _loaded(
    text: bytes, file: File, namespace: str, pool: ProviderPool | None
) -> tuple[list[Mistake], LoadedSimulation | None]:
    sources = read_source(text, str(file))
    source = sources[0] if sources else Source(str(file))
    if not sources:
        source.refuse((), f"the file is empty; expected a document of the kind {KIND}")
    for other in sources[1:]:
        source.refuse_at(other.positions[()], (), "a second document; expected one simulation in a file")
    simulation = BAD
    if source.value is not None:
        simulation = Reader(source, {}).struct(Simulation, _placed(source.value, namespace), ())
    if simulation is BAD or source.mistakes:
        return _ordered(source), None
    spec = simulation.spec
    box_file = file.parent / spec.box
    box = load_checked_box(_read(box_file), file=str(box_file), pool=pool)
    kinds = _kinds_of(box)
    given = _objects(source, spec.given, ("spec", "given"), file.parent)
    applied = tuple(
        _objects(source, step.apply, ("spec", "steps", index, "apply"), file.parent)
        for index, step in enumerate(spec.steps)
    )
    for path, kind in _kinds_named(simulation):
        if kind not in kinds:
            near = hint(kind, kinds)
            source.refuse((*path, "kind"), f"neither of the box nor of Kubernetes: add its apiVersion{near}")
    calls = {call.name for declared in box.spec.crds.values() for call in declared.external}
    places: list[tuple[Path, Any]] = [(("spec",), spec.answers)]
    places += [(("spec", "steps", index), step.answers) for index, step in enumerate(spec.steps)]
    for path, answers in places:
        for name in answers:
            if name not in calls:
                source.refuse((*path, "answers", name), f"no call of the box{hint(name, calls)}")
    if source.mistakes:
        return _ordered(source), None
    return [], LoadedSimulation(simulation, box, box_file, given, applied, kinds)


def _ordered(source: Source) -> list[Mistake]:
    return sorted(source.mistakes, key=lambda mistake: (mistake.line, mistake.column))


def _kinds_of(box: OperatorBox) -> dict[str, GroupVersionKind]:
    kinds = dict(_COMMON)
    kinds |= {kind.gvk.kind: kind.gvk for kind in KINDS.values() if kind.gvk is not None}
    made = (resource.gvk for declared in box.spec.crds.values() for resource in declared.resources)
    kinds |= {gvk.kind: gvk for gvk in made}
    return kinds | {declared.resource.gvk.kind: declared.resource.gvk for declared in box.spec.crds.values()}


def _kinds_named(simulation: Simulation) -> Iterator[tuple[Path, str]]:
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


def _objects(source: Source, listed: tuple[dict[str, Any] | str, ...], path: Path, folder: File) -> tuple[Object, ...]:
    found: list[Object] = []
    for index, each in enumerate(listed):
        at = (*path, index)
        if isinstance(each, str):
            try:
                documents = _documents(folder / each)
            except (ConfigurationError, yaml.YAMLError, ValueError) as error:
                source.refuse(at, " ".join(str(error).split()))
                continue
        else:
            documents = [each]
        for obj in documents:
            if _is_object(obj):
                found.append(obj)
            else:
                source.refuse(at, "expected an object with apiVersion, kind and metadata.name")
    return tuple(found)


def _is_object(value: Any) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("apiVersion", "kind")):
        return False
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _documents(file: File) -> list[Any]:
    text = _read(file)
    check_yaml_depth(text)
    return [each for each in yaml.load_all(text, Loader=ObjectLoader) if each is not None]


def _placed(value: Any, namespace: str) -> Any:
    """With the namespace in place."""
    return _mapped(value, lambda text: _NAMESPACE.sub(namespace, text))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


def _read(file: File) -> bytes:
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
    return text
