"""Lock files: the content of each reference of a tree, so that it is the same at every resolution. Pure.

A lock file is sorted YAML: the same entries give the same bytes. For each reference it has the digest of the content,
its source, and the parameters of its permanent name where the source has such names. A relative reference is recorded
as the absolute reference that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

import msgspec
import yaml

from konverge._internal.kube.yaml_loader import YamlLimits, load_yaml
from konverge._internal.message_text import to_printable
from konverge.errors import ConfigurationError
from konverge_resolution._internal.reference import DIGEST_PATTERN, Parameters, Reference, Value, to_canonical_json
from konverge_resolution._internal.resolution_plan import CACHE
from konverge_resolution._internal.resolved_content import Provenance

__all__ = ["MAX_LOCK_BYTES", "MAX_LOCK_ENTRIES", "LockEntry", "LockFile", "drop_cache_mode"]

MAX_LOCK_BYTES = 4 << 20
"""Maximum size of a lock file in bytes."""

MAX_LOCK_ENTRIES = 1000
"""Maximum number of entries of a lock file."""

_API_VERSION = "resolution.konverge.dev/v1alpha1"
_KIND = "DefinitionLock"
_HEADER = "# Made by konverge resolve --lock. Commit it; to take what is there now, lock again with --update.\n"
_ERROR_PATH = re.compile(r"(?P<problem>.*?)(?: - at `(?:key in )?\$\.?(?P<path>[^`]*)`)?", re.DOTALL)

_MAX_TEXT = 200
_LIMITS = YamlLimits(max_depth=100, max_nodes=100_000)

_DigestText = Annotated[str, msgspec.Meta(pattern=DIGEST_PATTERN)]


class LockEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Locked content of one reference.

    Attributes:
        resolver: The name of the resolver.
        digest: The digest of the content.
        source: The source of the content.
        params: The parameters of the reference.
        defaults: The defaults that the resolver used for missing parameters.
        pinned: The parameters with the version; all others come from the reference.
        found_at: The actual source as policies name it, if a redirect led to it
            (`konverge_resolution.ResolvedContent`).
        found_params: The parameters of the actual source, if they differ.
        root: Whether a user requested it, and not only another definition refers to it.
    """

    resolver: str
    digest: _DigestText
    source: Provenance
    root: bool = False
    params: Mapping[str, Value] = {}
    defaults: Mapping[str, Value] = {}
    pinned: Mapping[str, Value] = {}
    found_at: str = ""
    found_params: Mapping[str, Value] = {}

    @property
    def key(self) -> bytes:
        """The key of the entry: its resolver and parameters."""
        return to_canonical_json([self.resolver, self.params])

    @property
    def reference(self) -> Reference:
        """The reference that the entry locks."""
        return Reference(self.resolver, self.params)


class _LockFileDocument(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Lock file in its serialized form."""

    api_version: Literal["resolution.konverge.dev/v1alpha1"]
    kind: Literal["DefinitionLock"]
    entries: Annotated[list[LockEntry], msgspec.Meta(max_length=MAX_LOCK_ENTRIES)]


class LockFile:
    """Immutable collection of lock entries.

    Args:
        entries: The entries; a later entry replaces an earlier one for the same reference.
        file: The name of the file in messages.
    """

    def __init__(self, entries: Iterable[LockEntry] = (), *, file: str = "the lock file") -> None:
        self.file = file
        found = {entry.key: entry for entry in entries}
        self._entries = dict(sorted(found.items()))

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LockEntry]:
        return iter(self._entries.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LockFile) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(tuple(self._entries))

    def find(self, reference: Reference) -> LockEntry | None:
        """Return the entry of a reference; None when it is not locked."""
        return self._entries.get(to_canonical_json([reference.resolver, drop_cache_mode(reference.params)]))

    def with_entries(self, *entries: LockEntry) -> LockFile:
        """Return a copy with more entries, which replace those for the same references."""
        return LockFile([*self, *entries], file=self.file)

    def with_root(self, reference: Reference) -> LockFile:
        """Return a copy in which this reference is marked as a root; it must have an entry."""
        entry = self.find(reference)
        assert entry is not None, "a root is locked before it is marked"
        return self.with_entries(msgspec.structs.replace(entry, root=True))

    def serialize(self) -> str:
        """Return the lock file as YAML: the same bytes for the same entries.

        Raises:
            konverge.errors.ConfigurationError: The file would be larger than the limit for reading.
        """
        message = {
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "entries": [msgspec.to_builtins(entry, order="sorted") for entry in self],
        }
        text = _HEADER + yaml.dump(message, Dumper=yaml.CSafeDumper, sort_keys=False, width=1 << 16, allow_unicode=True)
        if len(self) > MAX_LOCK_ENTRIES or len(text.encode()) > MAX_LOCK_BYTES:
            expected = f"at most {MAX_LOCK_ENTRIES} entries and {MAX_LOCK_BYTES >> 20} MiB"
            raise ConfigurationError(f"expected a lock file of {expected}, found {len(self)}; split it")
        return text

    @classmethod
    def parse(cls, text: bytes, *, file: str) -> LockFile:
        """Parse a lock file.

        Args:
            text: The content of the file.
            file: The name of the file in messages.

        Raises:
            konverge.errors.ConfigurationError: It is not a lock file; the message has the first error and its position.
        """
        if len(text) > MAX_LOCK_BYTES:
            raise ConfigurationError(f"{file}: expected a lock file of at most {MAX_LOCK_BYTES >> 20} MiB, found more")
        try:
            plain = load_yaml(text, _LIMITS)
        except yaml.MarkedYAMLError as error:
            line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
            raise ConfigurationError(f"{file}{line}: not a lock file: {error.problem or 'invalid YAML'}") from None
        except yaml.YAMLError as error:
            raise ConfigurationError(f"{file}: not a lock file: invalid YAML: {' '.join(str(error).split())}") from None
        if isinstance(plain, dict) and plain.get("kind") == _KIND and plain.get("apiVersion") != _API_VERSION:
            found = to_printable(str(plain.get("apiVersion")), 80)
            raise ConfigurationError(
                f"{file}: apiVersion: expected {_API_VERSION}, found {found}; lock again with this version of konverge"
            )
        if isinstance(plain, dict) and plain.get("kind") != _KIND:
            found = to_printable(str(plain["kind"]), 80) if "kind" in plain else "an object without a kind"
            raise ConfigurationError(f"{file}: not a lock file: expected {_KIND}, found {found}")
        try:
            read = msgspec.convert(plain, _LockFileDocument)
        except msgspec.ValidationError as error:
            message = _ERROR_PATH.fullmatch(str(error))
            where, problem = ("", str(error)) if message is None else (message["path"] or "", message["problem"])
            raise ConfigurationError(
                f"{file}: not a lock file: {to_printable(where, _MAX_TEXT)}{': ' if where else ''}"
                f"{to_printable(problem, _MAX_TEXT)}"
            ) from None
        lock = cls(read.entries, file=file)
        if len(lock) != len(read.entries):
            raise ConfigurationError(f"{file}: not a lock file: two entries for the same reference")
        return lock


def drop_cache_mode(params: Parameters) -> dict[str, Value]:
    """Return the parameters without `CACHE`, which does not affect the content."""
    return {name: value for name, value in params.items() if name != CACHE}
