"""Checks of fetched content: it must be one object of an allowed kind.

A resolver reads with permissions that its users do not have. This module refuses everything but definitions (a Secret,
a key, a text file), whatever resolver fetched it. The message contains none of the content: otherwise a reference could
be used to read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.kube.yaml_loader import ObjectYAMLError, YamlLimits, load_yaml_documents
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolved_content import MAX_CONTENT_BYTES

__all__ = ["ANY_KIND", "DEFINITION_LIMITS", "AllowedKinds", "is_forbidden_kind", "parse_content"]

_FORBIDDEN = frozenset({"secret", "secrets", "secretlist", "list"})
_LIST = "list"
_KIND = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_TYPE_FIELDS = {"apiversion": "apiVersion", "kind": "kind", "items": "items"}


@dataclass(frozen=True, slots=True)
class AllowedKinds:
    """Kinds that may be fetched. Never a Secret, a bare list, or a list with a Secret among its items.

    Args:
        rules: ``Kind.group`` or ``*.group`` (``Task.tekton.dev``, ``*.tekton.dev``), ``Kind`` for the core group; empty
            allows every kind.
    """

    rules: tuple[str, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> AllowedKinds:
        """Parse rules.

        Raises:
            ValueError: A rule has a wrong format.
        """
        for text in texts:
            kind, _, group = text.partition(".")
            if not (kind == "*" or (kind.isascii() and kind[:1].isupper() and kind.isalnum())) or text.endswith("."):
                raise ValueError(f"expected Kind.group or *.group, as in Task.tekton.dev, found {text[:80]!r}")
            if kind == "*" and not group:
                raise ValueError("expected Kind.group or *.group, found '*'; to allow every kind, list none")
        return cls(tuple(texts))

    def allows(self, gvk: GroupVersionKind) -> bool:
        """Tell whether objects of this kind may be fetched."""
        if is_forbidden_kind(gvk):
            return False
        if not self.rules:
            return True
        suffix = f".{gvk.group}" if gvk.group else ""
        return f"{gvk.kind}{suffix}" in self.rules or f"*{suffix}" in self.rules


ANY_KIND = AllowedKinds()


def is_forbidden_kind(gvk: GroupVersionKind) -> bool:
    """Tell whether the kind is a Secret or a bare list, or can be read as one.

    The comparison ignores case. It applies to all groups without a dot, since only groups of custom resources have one:
    some clients read ``core/v1`` as ``v1``.
    """
    return gvk.kind.lower() in _FORBIDDEN and "." not in gvk.group


DEFINITION_LIMITS = YamlLimits(max_depth=100, max_nodes=100_000, max_written_nodes=100_000)
"""Limits of the YAML of a definition."""


def parse_content(data: bytes, allowed: AllowedKinds = ANY_KIND) -> Object:
    """Parse content as one object.

    Args:
        data: YAML or JSON.
        allowed: The allowed kinds.

    Raises:
        ResolutionError: ``TooLarge``, or ``UnsupportedContent``: the content is not text, not YAML, not one document,
            not an object, or of a kind that may not be fetched.
    """
    if len(data) > MAX_CONTENT_BYTES:
        expected = f"expected at most {MAX_CONTENT_BYTES} bytes, found {len(data)}"
        raise ResolutionError(Reason.TOO_LARGE, f"the content is too large: {expected}")
    found = _parse_document(data)
    if not isinstance(found, dict):
        raise _build_error("an object with apiVersion and kind", "another type")
    for place in _find_forbidden_kinds(found, allowed):
        permitted = ", ".join(allowed.rules) or "any kind but Secrets and lists"
        subject = f"the content has {place}, which" if place else "the content"
        message = f"{subject} is of a kind that must not be fetched; allowed: {permitted}"
        raise ResolutionError(Reason.UNSUPPORTED_CONTENT, message)
    return found


def _find_forbidden_kinds(found: Object, allowed: AllowedKinds) -> Iterator[str]:
    """Yield the paths of objects of forbidden kinds: the object itself and the items of lists at every depth.

    Raises:
        ResolutionError: An object has no kind, or can be read as an object of another kind.
    """
    pending: list[tuple[str, Object, GroupVersionKind | None]] = [("", found, None)]
    while pending:
        place, each, implied = pending.pop()
        gvk = _parse_kind(each, implied)
        # An allowed list may contain objects of the kind that its own kind names.
        if is_forbidden_kind(gvk) or (gvk != implied and not allowed.allows(gvk)):
            yield place
        items = each.get("items")
        if isinstance(items, list):  # whatever the kind: clients treat an object with items as a list
            is_list = gvk.kind.lower().endswith(_LIST)
            inner = gvk._replace(kind=gvk.kind[: -len(_LIST)]) if is_list else gvk
            objects = [(f"{place}.items[{index}]".lstrip("."), item) for index, item in enumerate(items)]
            pending += [(at, item, inner) for at, item in objects if isinstance(item, dict)]


def _parse_kind(found: Object, implied: GroupVersionKind | None) -> GroupVersionKind:
    for name in found:
        meant = _TYPE_FIELDS.get(name.lower())
        if meant is not None and name != meant:
            raise _build_error(f"a field {meant}", "one with other upper and lower case")
    if implied is not None and "kind" not in found and "apiVersion" not in found:
        return implied  # the API server omits the kind of list items
    api_version, kind = found.get("apiVersion"), found.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        raise _build_error("an object with apiVersion and kind", "one without")
    if not _KIND.fullmatch(kind) or not _API_VERSION.fullmatch(api_version):
        raise _build_error("valid names as apiVersion and kind", "invalid characters")
    return GroupVersionKind.parse(api_version, kind)


def _parse_document(data: bytes) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _build_error("text in UTF-8", "other bytes") from None
    if not text.strip():
        raise _build_error("an object", "nothing")
    try:
        documents = []
        for document in load_yaml_documents(text, DEFINITION_LIMITS):
            documents.append(document)
            if len(documents) > 1 and document is not None:
                raise _build_error("one document", "several")
        if not documents:
            raise _build_error("an object", "nothing but comments")
    except yaml.MarkedYAMLError as error:
        # Problems of libyaml can quote the content, and so can the lines that the error's own text contains.
        line = 0 if error.problem_mark is None else error.problem_mark.line + 1
        problem = error.problem if isinstance(error, ObjectYAMLError) else "it cannot be parsed"
        raise _build_error("YAML or JSON", f"an error in line {line}: {problem}") from None
    except yaml.YAMLError:
        raise _build_error("YAML or JSON", "another format") from None
    return documents[0]


def _build_error(expected: str, found: str) -> ResolutionError:
    return ResolutionError(
        Reason.UNSUPPORTED_CONTENT, f"the content is not a definition: expected {expected}, found {found}"
    )
