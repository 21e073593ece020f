"""What came, looked at before anybody gets it: one object of a kind that may be fetched, and nothing else.

A resolver reads with rights that its users do not have. What is no definition (a Secret, a key, a text file) is refused
here, whoever brought it, and nothing of it is in the message: else a reference would be a way to read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from konverge.kube import GroupVersionKind, Object
from konverge.kube.yaml_loader import ObjectYAMLError, YamlLimits, load_yaml_documents
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.resolved_content import MAX_CONTENT_BYTES

__all__ = ["ANY_KIND", "DEFINITION_LIMITS", "AllowedKinds", "is_forbidden_kind", "parse_content"]

_FORBIDDEN = frozenset({"secret", "secrets", "secretlist", "list"})
_LIST = "list"
_KIND = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_TYPE_FIELDS = {"apiversion": "apiVersion", "kind": "kind", "items": "items"}


@dataclass(frozen=True, slots=True)
class AllowedKinds:
    """Which kinds may be fetched. A Secret never may, nor a bare list, nor what has a Secret among its items.

    Args:
        rules: ``Kind.group`` or ``*.group`` (``Task.tekton.dev``, ``*.tekton.dev``), ``Kind`` for the group without a
            name; empty allows every kind.
    """

    rules: tuple[str, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> AllowedKinds:
        """Read rules.

        Raises:
            ValueError: One is none.
        """
        for text in texts:
            kind, _, group = text.partition(".")
            if not (kind == "*" or (kind.isascii() and kind[:1].isupper() and kind.isalnum())) or text.endswith("."):
                raise ValueError(f"expected Kind.group or *.group, as in Task.tekton.dev, found {text[:80]!r}")
            if kind == "*" and not group:
                raise ValueError("expected Kind.group or *.group, found '*'; to allow every kind, say none")
        return cls(tuple(texts))

    def allows(self, gvk: GroupVersionKind) -> bool:
        """Tell whether objects of that kind may be fetched."""
        if is_forbidden_kind(gvk):
            return False
        if not self.rules:
            return True
        suffix = f".{gvk.group}" if gvk.group else ""
        return f"{gvk.kind}{suffix}" in self.rules or f"*{suffix}" in self.rules


ANY_KIND = AllowedKinds()


def is_forbidden_kind(gvk: GroupVersionKind) -> bool:
    """Tell whether it is a Secret or a bare list, or what some reader takes for one.

    That is in any case, and in every group that is none of a custom resource, whose groups have a dot: ``core/v1`` is
    ``v1`` to some.
    """
    return gvk.kind.lower() in _FORBIDDEN and "." not in gvk.group


DEFINITION_LIMITS = YamlLimits(max_depth=100, max_nodes=100_000, max_written_nodes=100_000)
"""Limits of the YAML of a definition."""


def parse_content(data: bytes, allowed: AllowedKinds = ANY_KIND) -> Object:
    """The one object that the content is.

    Args:
        data: YAML or JSON.
        allowed: Which kinds it may be of.

    Raises:
        ResolutionError: ``TooLarge``, or ``UnsupportedContent``: it is no text, no YAML, not one document, no object,
            or of a kind that may not be fetched.
    """
    if len(data) > MAX_CONTENT_BYTES:
        expected = f"expected at most {MAX_CONTENT_BYTES} bytes, found {len(data)}"
        raise ResolutionError(Reason.TOO_LARGE, f"the content is too large: {expected}")
    found = _parse_document(data)
    if not isinstance(found, dict):
        raise _build_error("an object with apiVersion and kind", "something else")
    for place in _find_forbidden_kinds(found, allowed):
        known = ", ".join(allowed.rules) or "any kind but Secrets and lists"
        what = f"the content has {place}, which" if place else "the content"
        message = f"{what} is of a kind that may not be fetched; allowed: {known}"
        raise ResolutionError(Reason.UNSUPPORTED_CONTENT, message)
    return found


def _find_forbidden_kinds(found: Object, allowed: AllowedKinds) -> Iterator[str]:
    """Where there are objects of kinds that may not be fetched: itself, or what it has as a list, at whatever depth.

    Raises:
        ResolutionError: One has no kind, or can be read as one of another kind.
    """
    pending: list[tuple[str, Object, GroupVersionKind | None]] = [("", found, None)]
    while pending:
        place, each, implied = pending.pop()
        gvk = _parse_kind(each, implied)
        # What a list is called after may be in it, where it may be fetched itself.
        if is_forbidden_kind(gvk) or (gvk != implied and not allowed.allows(gvk)):
            yield place
        items = each.get("items")
        if isinstance(items, list):  # whatever its kind is called: clients take what has items for a list
            is_list = gvk.kind.lower().endswith(_LIST)
            inner = gvk._replace(kind=gvk.kind[: -len(_LIST)]) if is_list else gvk
            objects = [(f"{place}.items[{index}]".lstrip("."), item) for index, item in enumerate(items)]
            pending += [(at, item, inner) for at, item in objects if isinstance(item, dict)]


def _parse_kind(found: Object, implied: GroupVersionKind | None) -> GroupVersionKind:
    for name in found:
        meant = _TYPE_FIELDS.get(name.lower())
        if meant is not None and name != meant:
            raise _build_error(f"a field {meant}", "one that differs from it in its case alone")
    if implied is not None and "kind" not in found and "apiVersion" not in found:
        return implied  # a server leaves it out
    api_version, kind = found.get("apiVersion"), found.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        raise _build_error("an object with apiVersion and kind", "one without")
    if not _KIND.fullmatch(kind) or not _API_VERSION.fullmatch(api_version):
        raise _build_error("names of Kubernetes as apiVersion and kind", "something else")
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
        # Problems of libyaml can quote the content, and so do the lines that the error's own text would show.
        line = 0 if error.problem_mark is None else error.problem_mark.line + 1
        problem = error.problem if isinstance(error, ObjectYAMLError) else "it cannot be read"
        raise _build_error("YAML or JSON", f"an error in line {line}: {problem}") from None
    except yaml.YAMLError:
        raise _build_error("YAML or JSON", "something else") from None
    return documents[0]


def _build_error(expected: str, found: str) -> ResolutionError:
    return ResolutionError(
        Reason.UNSUPPORTED_CONTENT, f"the content is no definition: expected {expected}, found {found}"
    )
