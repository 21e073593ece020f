"""Whether a box can run: what loading finds, and what only compiling its steps finds, each with its place in the file.

Loading knows the file alone. What a step of its own refuses (a command of Redis that writes, a query that its protocol
has no use for, a field that a provider does not have, a schema that no server would take) is known to who compiles it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from konverge.errors import KonvergeError, format_error
from konverge_box.calls.compiled_call import CompiledCall
from konverge_box.file import BoxFieldError, BoxFileError, OperatorBox, load_box
from konverge_box.file.imported_box import ImportedBox, merge_imports
from konverge_box.file.validation_errors import format_path
from konverge_box.file.yaml_source import parse_source
from konverge_box.providers import ProviderPool, ProvidersStep
from konverge_box.runtime.locked_imports import load_locked_imports
from konverge_box.runtime.pipeline import Pipeline
from konverge_box.runtime.resource_class import build_resource_class
from konverge_resolution.network import AllowedNetworks

__all__ = ["find_box_errors", "load_valid_box", "validate_box"]

_PLACE = re.compile(r"(?P<path>spec(?:\.[\w-]+|\[[^\]]*\])+)(?:, line \d+, column \d+)?: (?P<problem>.*)", re.DOTALL)


def load_valid_box(text: str | bytes, *, file: str = "box.yaml", pool: ProviderPool | None = None) -> OperatorBox:
    """The box of a file, all of whose steps compile.

    Args:
        text: The file's content.
        file: What it is called in messages. What it imports is in the lock file beside it.
        pool: The providers; those of installed packages when not given.

    Raises:
        BoxFileError: It cannot be used; the error has every mistake that was found.
    """
    imported = load_locked_imports(text, file)
    box = load_box(text, file=file, imported=imported)
    validate_box(box, text, file=file, pool=pool, imported=imported)
    return box


def find_box_errors(
    text: str | bytes, *, file: str = "box.yaml", pool: ProviderPool | None = None
) -> tuple[BoxFieldError, ...]:
    """What is wrong in a file, in the order in which it stands there; empty for a box that can run.

    Args:
        text: The file's content.
        file: What it is called in messages.
        pool: The providers; those of installed packages when not given.
    """
    try:
        load_valid_box(text, file=file, pool=pool)
    except BoxFileError as error:
        return error.errors
    return ()


def validate_box(
    box: OperatorBox,
    text: str | bytes,
    *,
    file: str = "box.yaml",
    pool: ProviderPool | None = None,
    imported: Sequence[ImportedBox] | None = None,
) -> None:
    """Compile every step of a box that was loaded.

    Args:
        box: The box.
        text: The file's content, for the places of mistakes.
        file: What it is called in messages.
        pool: The providers; those of installed packages when not given.
        imported: What it imports, for the places of mistakes.

    Raises:
        BoxFileError: Steps cannot be compiled; the error has the first mistake of each part.
    """
    pool = pool or ProviderPool()
    problems = dict.fromkeys(problem for name in box.spec.crds for problem in _find_problems(box, name, pool))
    if problems:
        raise BoxFileError(_build_errors(list(problems), text, file, imported))


def _find_problems(box: OperatorBox, name: str, pool: ProviderPool) -> Iterator[tuple[str, str]]:
    """The path of each mistake, and the mistake."""
    where, declared = f"spec.crds.{name}", box.spec.crds[name]
    networks = AllowedNetworks(box.spec.allowed_networks)
    # Parts that know nothing of each other one by one: a file is mended faster if all of them complain at once.
    parts: list[tuple[str, Callable[[], object]]] = [(f"{where}.resource", partial(build_resource_class, declared))]
    for index, call in enumerate(declared.external):
        path = f"{where}.external[{index}]"
        parts.append((path, partial(CompiledCall, call, path, networks)))
    for provider, items in declared.providers.items():
        make = partial(ProvidersStep, {provider: items}, box.spec.providers, f"{where}.providers", pool)
        parts.append((f"{where}.providers.{provider}", make))
    has_problems = False
    for path, compile_part in parts:
        try:
            compile_part()
        except KonvergeError as error:
            has_problems = True
            yield _locate_error(error, path)
    if has_problems:
        return  # the whole would complain of the same again
    try:
        Pipeline(box, name, pool)
    except KonvergeError as error:
        yield _locate_error(error, where)


def _locate_error(error: KonvergeError, otherwise: str) -> tuple[str, str]:
    text = format_error(error)
    found = _PLACE.fullmatch(text)
    return (found["path"], found["problem"]) if found else (otherwise, text)


def _build_errors(
    problems: list[tuple[str, str]], text: str | bytes, file: str, imported: Sequence[ImportedBox] | None
) -> list[BoxFieldError]:
    sources = parse_source(text, file)
    for source in sources:
        merge_imports(source, imported)
    positions = {format_path(path): at for source in sources for path, at in source.positions.items()}
    files = {format_path(path): source.find_file(path) for source in sources for path in source.positions}
    mistakes: list[BoxFieldError] = []
    for path, problem in problems:
        nearest = path
        while nearest and nearest not in positions:  # of what is absent the nearest value above
            nearest = nearest[: max(nearest.rfind("."), nearest.rfind("["), 0)]
        line, column = positions.get(nearest, (1, 1))
        mistakes.append(
            BoxFieldError(file=files.get(nearest, file), line=line, column=column, path=path, message=problem)
        )
    return sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column))
