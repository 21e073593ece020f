"""Lock files: what each reference of a tree came to, so that it comes to the same for everybody and for ever. Pure.

A lock file is YAML, sorted, the same bytes for the same content. Of each reference it has the digest of the content,
the parameters that name it for ever where the source has such names, and where it came from. References that are a path
beside others stand in it as what they came to mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

import msgspec
import yaml

from konverge.errors import ConfigurationError
from konverge.kube.yaml_loader import YamlLimits, load_yaml
from konverge_resolution.reference import DIGEST_PATTERN, Parameters, Reference, Value, to_canonical_json
from konverge_resolution.resolution_plan import CACHE
from konverge_resolution.resolved_content import Provenance

__all__ = ["MAX_LOCK_BYTES", "MAX_LOCK_ENTRIES", "LockEntry", "LockFile", "drop_cache_mode"]

MAX_LOCK_BYTES = 4 << 20
"""Of a lock file."""

MAX_LOCK_ENTRIES = 1000
"""Of a lock file."""

_API_VERSION = "resolution.konverge.dev/v1alpha1"
_KIND = "DefinitionLock"
_HEADER = "# Made by konverge resolve --lock. Commit it; to take what is there now, lock again with --update.\n"
_ERROR_PATH = re.compile(r"(?P<problem>.*?)(?: - at `(?:key in )?\$\.?(?P<path>[^`]*)`)?", re.DOTALL)

_MAX_TEXT = 200
_LIMITS = YamlLimits(max_depth=100, max_nodes=100_000)

_DigestText = Annotated[str, msgspec.Meta(pattern=DIGEST_PATTERN)]


class LockEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What one reference came to.

    Attributes:
        resolver: Who was asked.
        digest: Of the content.
        source: Where it came from.
        params: What was asked for.
        defaults: What its resolver took for the parameters that were not given.
        pinned: Those parameters that say which version was taken; all others are those of the reference.
        found_at: Where it was in the end, as policies name it, where a redirect led there
            (`konverge_resolution.ResolvedContent`).
        found_params: The parameters by which it would have been asked for there, where they are other ones.
        root: It was asked for by itself, and not because another definition refers to it.
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
        """What it is found by."""
        return to_canonical_json([self.resolver, self.params])

    @property
    def reference(self) -> Reference:
        """The reference that it is for."""
        return Reference(self.resolver, self.params)


class _LockFileDocument(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A lock file as it is written."""

    api_version: Literal["resolution.konverge.dev/v1alpha1"]
    kind: Literal["DefinitionLock"]
    entries: Annotated[list[LockEntry], msgspec.Meta(max_length=MAX_LOCK_ENTRIES)]


class LockFile:
    """What references came to; it does not change.

    Args:
        entries: Of two for one reference the later counts.
        file: What messages call it.
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
        """What a reference came to; None when it is not locked."""
        return self._entries.get(to_canonical_json([reference.resolver, drop_cache_mode(reference.params)]))

    def with_entries(self, *entries: LockEntry) -> LockFile:
        """The same with more entries, in place of those for the same references."""
        return LockFile([*self, *entries], file=self.file)

    def with_root(self, reference: Reference) -> LockFile:
        """The same, where this reference was asked for by itself; it has to have an entry."""
        entry = self.find(reference)
        assert entry is not None, "a root is locked before it is marked"
        return self.with_entries(msgspec.structs.replace(entry, root=True))

    def serialize(self) -> str:
        """The lock file: the same bytes for the same entries.

        Raises:
            konverge.errors.ConfigurationError: It would be larger than one that can be read.
        """
        message = {
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "entries": [msgspec.to_builtins(entry, order="sorted") for entry in self],
        }
        text = _HEADER + yaml.dump(message, Dumper=yaml.CSafeDumper, sort_keys=False, width=1 << 16, allow_unicode=True)
        if len(self) > MAX_LOCK_ENTRIES or len(text.encode()) > MAX_LOCK_BYTES:
            expected = f"at most {MAX_LOCK_ENTRIES} entries and {MAX_LOCK_BYTES >> 20} MiB"
            raise ConfigurationError(f"expected a lock file of {expected}, found {len(self)}; divide it into several")
        return text

    @classmethod
    def parse(cls, text: bytes, *, file: str) -> LockFile:
        """Read a lock file.

        Args:
            text: What it has.
            file: What messages call it.

        Raises:
            konverge.errors.ConfigurationError: It is none; the message says what is wrong first, and where.
        """
        if len(text) > MAX_LOCK_BYTES:
            raise ConfigurationError(f"{file}: expected a lock file of at most {MAX_LOCK_BYTES >> 20} MiB, found more")
        try:
            plain = load_yaml(text, _LIMITS)
        except yaml.MarkedYAMLError as error:
            line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
            raise ConfigurationError(f"{file}{line}: no lock file: {error.problem or 'no YAML'}") from None
        except yaml.YAMLError as error:
            raise ConfigurationError(f"{file}: no lock file: no YAML: {' '.join(str(error).split())}") from None
        if isinstance(plain, dict) and plain.get("kind") == _KIND and plain.get("apiVersion") != _API_VERSION:
            found = _sanitize_text(str(plain.get("apiVersion"))[:80])
            raise ConfigurationError(
                f"{file}: apiVersion: expected {_API_VERSION}, found {found}; lock again with this version of konverge"
            )
        if isinstance(plain, dict) and plain.get("kind") != _KIND:
            found = _sanitize_text(str(plain["kind"])[:80]) if "kind" in plain else "an object without a kind"
            raise ConfigurationError(f"{file}: no lock file: expected {_KIND}, found {found}")
        try:
            read = msgspec.convert(plain, _LockFileDocument)
        except msgspec.ValidationError as error:
            message = _ERROR_PATH.fullmatch(str(error))
            where, problem = ("", str(error)) if message is None else (message["path"] or "", message["problem"])
            raise ConfigurationError(
                f"{file}: no lock file: {_sanitize_text(where)}{': ' if where else ''}{_sanitize_text(problem)}"
            ) from None
        lock = cls(read.entries, file=file)
        if len(lock) != len(read.entries):
            raise ConfigurationError(f"{file}: no lock file: two entries are for the same reference")
        return lock


def _sanitize_text(text: str) -> str:
    """What somebody has written into a lock file, for a message: nothing that a terminal obeys."""
    text = text[:_MAX_TEXT]
    return text if text.isprintable() else repr(text)


def drop_cache_mode(params: Parameters) -> dict[str, Value]:
    """The parameters that say what, without the one that says how (`CACHE`)."""
    return {name: value for name, value in params.items() if name != CACHE}
