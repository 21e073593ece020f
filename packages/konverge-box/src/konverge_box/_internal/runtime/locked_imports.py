"""The imports of a box, read from the lock file and the content folder beside it, without a network.

``konverge box lock box.yaml`` resolves the references and writes ``box.lock.yaml`` and ``box.lock.yaml.d``. Every later
load of the box (lint, run, a reload, package) uses exactly this content and verifies its digest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from konverge.errors import ConfigurationError
from konverge_box._internal.file import BoxFieldError, BoxFileError
from konverge_box._internal.file.imported_box import ImportedBox
from konverge_box._internal.file.model import API_VERSION, KIND
from konverge_box._internal.file.validation_errors import Path as FieldPath
from konverge_box._internal.file.validation_errors import format_path
from konverge_box._internal.file.yaml_source import YamlSource, parse_source
from konverge_resolution._internal.content_store import ContentStore, find_content_folder
from konverge_resolution._internal.content_validation import AllowedKinds
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.lock_file import MAX_LOCK_BYTES, LockFile
from konverge_resolution._internal.lock_lookup import LockLookup
from konverge_resolution._internal.lock_validation import LockedReference
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.reference_parsing import ParsedReference, parse_reference
from konverge_resolution._internal.relative_references import ParentDefinition, build_relative_reference
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers import load_resolvers

__all__ = ["IMPORTED_KINDS", "build_lock_path", "list_imports", "load_locked_imports"]

IMPORTED_KINDS = AllowedKinds.parse([f"{KIND}.{API_VERSION.partition('/')[0]}"])
"""The kinds that a box can import: boxes."""

_MAX_IMPORTS = 100


def build_lock_path(file: Path) -> Path:
    """Return the lock file of a box: ``box.lock.yaml`` for ``box.yaml``."""
    return file.with_name(f"{file.stem}.lock.yaml")


@dataclass(frozen=True, slots=True)
class _ImportEntry:
    """One import: its path, its file and its value."""

    source: YamlSource
    path: FieldPath
    value: object
    container: ParentDefinition | None = None


def list_imports(text: str | bytes, file: str) -> list[ParsedReference]:
    """Return the references in the box itself, in order.

    Args:
        text: The box.
        file: The name of the file in messages.

    Raises:
        BoxFileError: An import is not a valid reference.
    """
    references = []
    for entry in _find_imports(text, file):
        try:
            references.append(parse_reference(entry.value, where=format_path(entry.path)))
        except ResolutionError as error:
            raise _build_import_error(entry, error.message) from None
    return references


def load_locked_imports(text: str | bytes, file: str) -> tuple[ImportedBox, ...] | None:
    """Load everything that a box imports, directly or through other imports.

    Args:
        text: The box.
        file: The path of the file. Stdin has no lock file.

    Returns:
        The imported boxes, empty for a box without imports; None when there is no lock file.

    Raises:
        BoxFileError: An import is not locked, its content is missing, or the content has another digest.
        konverge.errors.ConfigurationError: The lock file cannot be read.
    """
    pending = _find_imports(text, file)
    if not pending:
        return ()
    lock_file = build_lock_path(Path(file))
    try:
        with lock_file.open("rb") as opened:
            lock = LockFile.parse(opened.read(MAX_LOCK_BYTES + 1), file=str(lock_file))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{lock_file}: {error.strerror}") from error
    contents, registry = ContentStore(find_content_folder(lock_file)), ResolverRegistry.of(load_resolvers())
    lookup = LockLookup(lock, registry)
    boxes: dict[bytes, ImportedBox] = {}
    while pending:
        wanted = pending.pop(0)
        try:
            locked = _find_locked(wanted, lookup, registry)
            entry = locked.entry
            if entry.key in boxes:
                continue
            if len(boxes) >= _MAX_IMPORTS:
                raise ResolutionError(Reason.TOO_LARGE, f"expected at most {_MAX_IMPORTS} imports")
            data = contents.get(Digest.parse(entry.digest))
            if data is None:
                problem = f"content {entry.digest} is not in {contents.folder}; run konverge box lock {file}"
                raise ResolutionError(Reason.UNREACHABLE, problem)
            locked.check_content(data)
        except ResolutionError as error:
            raise _build_import_error(wanted, error.message) from None
        label = str(entry.source)
        boxes[entry.key] = ImportedBox(label, data)
        container = ParentDefinition(locked.pinned_reference, ResolvedContent(data, entry.source))
        pending += [
            _ImportEntry(inner.source, inner.path, inner.value, container) for inner in _find_imports(data, label)
        ]
    return tuple(boxes.values())


def _find_imports(text: str | bytes, file: str) -> list[_ImportEntry]:
    sources = parse_source(text, file)
    value = sources[0].value if sources else None
    spec = value.get("spec") if isinstance(value, dict) else None
    imports = spec.get("imports") if isinstance(spec, dict) else None
    if not isinstance(imports, list):
        return []
    return [_ImportEntry(sources[0], ("spec", "imports", index), entry) for index, entry in enumerate(imports)]


def _find_locked(wanted: _ImportEntry, lookup: LockLookup, registry: ResolverRegistry) -> LockedReference:
    written = parse_reference(wanted.value, where=format_path(wanted.path))
    choices = written.choices
    if not choices:
        if wanted.container is None:
            problem = "expected a resolver, found only a path, which only an imported box can use; name a resolver"
            raise ResolutionError(Reason.INVALID_PARAMETERS, problem)
        choices = (build_relative_reference(registry, wanted.container, written.path, digest=written.digest),)
    for reference in choices:
        entry = lookup.find(reference)
        if entry is not None:
            return lookup.check(entry, reference)
    problem = f"{lookup.describe_missing(choices[0])}; lock it with konverge box lock"
    raise ResolutionError(Reason.NOT_FOUND, problem)


def _build_import_error(wanted: _ImportEntry, message: str) -> BoxFileError:
    line, column = wanted.source.positions.get(wanted.path, (1, 1))
    path = format_path(wanted.path)
    message = message.removeprefix(path).lstrip(":. ")
    return BoxFileError([BoxFieldError(file=wanted.source.file, line=line, column=column, path=path, message=message)])
