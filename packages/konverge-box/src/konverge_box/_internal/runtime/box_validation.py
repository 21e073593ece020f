"""The complete check of a box file: the errors of loading and of compiling, each with its position in the file.

Loading reads only the file. Compiling the steps finds further errors: a Redis command that writes, a query that the
protocol does not support, an unknown field of a provider, a schema that no server would accept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from konverge.errors import KonvergeError, format_error
from konverge_box._internal.calls.compiled_call import CompiledCall
from konverge_box._internal.file import BoxFieldError, BoxFileError, OperatorBox, load_box
from konverge_box._internal.file.imported_box import ImportedBox, merge_imports
from konverge_box._internal.file.validation_errors import format_path
from konverge_box._internal.file.yaml_source import parse_source
from konverge_box._internal.providers import ProviderPool, ProvidersStep
from konverge_box._internal.runtime.locked_imports import load_locked_imports
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.runtime.resource_class import build_resource_class
from konverge_resolution._internal.network import AllowedNetworks

__all__ = ["find_box_errors", "load_valid_box", "validate_box"]

_PATH_AND_PROBLEM = re.compile(
    r"(?P<path>spec(?:\.[\w-]+|\[[^\]]*\])+)(?:, line \d+, column \d+)?: (?P<problem>.*)", re.DOTALL
)


def load_valid_box(text: str | bytes, *, file: str = "box.yaml", pool: ProviderPool | None = None) -> OperatorBox:
    """Load the box of a file, and compile all its steps.

    Args:
        text: The file's content.
        file: The name of the file in messages. The lock file beside it contains the imports.
        pool: The providers (default: those of installed packages).

    Raises:
        BoxFileError: The box cannot be used. The error contains every validation error.
    """
    imported = load_locked_imports(text, file)
    box = load_box(text, file=file, imported=imported)
    validate_box(box, text, file=file, pool=pool, imported=imported)
    return box


def find_box_errors(
    text: str | bytes, *, file: str = "box.yaml", pool: ProviderPool | None = None
) -> tuple[BoxFieldError, ...]:
    """Return the validation errors of a file in the order of their positions; nothing for a valid box.

    Args:
        text: The file's content.
        file: The name of the file in messages.
        pool: The providers (default: those of installed packages).
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
    """Compile every step of a loaded box.

    Args:
        box: The box.
        text: The file's content, for the positions of errors.
        file: The name of the file in messages.
        pool: The providers (default: those of installed packages).
        imported: The imported boxes, for the positions of errors.

    Raises:
        BoxFileError: Steps cannot be compiled. The error contains the first validation error of each part.
    """
    pool = pool or ProviderPool()
    problems = dict.fromkeys(problem for name in box.spec.crds for problem in _find_problems(box, name, pool))
    if problems:
        raise BoxFileError(_build_errors(list(problems), text, file, imported))


def _find_problems(box: OperatorBox, name: str, pool: ProviderPool) -> Iterator[tuple[str, str]]:
    """Yield the path and the message of each error."""
    where, declared = f"spec.crds.{name}", box.spec.crds[name]
    networks = AllowedNetworks(box.spec.allowed_networks)
    # Independent parts are compiled separately, so that one run reports the errors of all of them.
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
        return  # the whole pipeline would report the same errors again
    try:
        Pipeline(box, name, pool)
    except KonvergeError as error:
        yield _locate_error(error, where)


def _locate_error(error: KonvergeError, otherwise: str) -> tuple[str, str]:
    text = format_error(error)
    match = _PATH_AND_PROBLEM.fullmatch(text)
    return (match["path"], match["problem"]) if match else (otherwise, text)


def _build_errors(
    problems: list[tuple[str, str]], text: str | bytes, file: str, imported: Sequence[ImportedBox] | None
) -> list[BoxFieldError]:
    sources = parse_source(text, file)
    for source in sources:
        merge_imports(source, imported)
    positions = {format_path(path): at for source in sources for path, at in source.positions.items()}
    files = {format_path(path): source.find_file(path) for source in sources for path in source.positions}
    errors: list[BoxFieldError] = []
    for path, problem in problems:
        nearest = path
        while nearest and nearest not in positions:  # an absent field has the position of its nearest parent
            nearest = nearest[: max(nearest.rfind("."), nearest.rfind("["), 0)]
        line, column = positions.get(nearest, (1, 1))
        errors.append(
            BoxFieldError(file=files.get(nearest, file), line=line, column=column, path=path, message=problem)
        )
    return sorted(errors, key=lambda error: (error.line, error.column))
