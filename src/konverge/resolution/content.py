"""What came, looked at before anybody gets it: one object of a kind that may be fetched, and nothing else.

A resolver reads with rights that its users do not have. What is no definition (a Secret, a key, a text file) is refused
here, whoever brought it, and nothing of it is in the message: else a reference would be a way to read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from konverge.kube import GroupVersionKind, Object
from konverge.kube.yaml_depth import check_yaml_depth
from konverge.kube.yaml_errors import ObjectYAMLError
from konverge.kube.yaml_loader import ObjectLoader
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason
from konverge.resolution.result import MAX_CONTENT_BYTES

__all__ = ["ANY_KIND", "AllowedKinds", "StrictLoader", "check_content"]

_MAX_NODES = 100_000
_MAX_DEPTH = 100
_NEVER = frozenset({"Secret", "SecretList", "List"})
_MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True)
class AllowedKinds:
    """Which kinds may be fetched. A Secret never may, nor a list, which may have Secrets in it.

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
        if gvk.group == "" and gvk.kind in _NEVER:
            return False
        if not self.rules:
            return True
        suffix = f".{gvk.group}" if gvk.group else ""
        return f"{gvk.kind}{suffix}" in self.rules or f"*{suffix}" in self.rules


ANY_KIND = AllowedKinds()


class StrictLoader(ObjectLoader):
    """Loads YAML whose fields stand once each, within the limits of a definition."""

    max_depth = _MAX_DEPTH
    max_nodes = _MAX_NODES

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping.

        Raises:
            ObjectYAMLError: A field stands twice, or its name is none.
        """
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                name = key.value if key.tag == _MERGE else self.field_name(key)
                if name in seen:
                    raise ObjectYAMLError(problem="a field stands twice", problem_mark=key.start_mark)
                seen.add(name)
        return super().construct_mapping(node, deep)


def check_content(data: bytes, allowed: AllowedKinds = ANY_KIND) -> Object:
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
    found = _document(data)
    if not isinstance(found, dict):
        raise _unsupported("an object with apiVersion and kind", "something else")
    api_version, kind = found.get("apiVersion"), found.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        raise _unsupported("an object with apiVersion and kind", "one without")
    gvk = GroupVersionKind.parse(api_version, kind)
    if not allowed.allows(gvk):
        known = ", ".join(allowed.rules) or "any kind but Secrets and lists"
        raise ResolutionError(
            Reason.UNSUPPORTED_CONTENT, f"the content is of a kind that may not be fetched; allowed: {known}"
        )
    return found


def _document(data: bytes) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _unsupported("text in UTF-8", "other bytes") from None
    if not text.strip():
        raise _unsupported("an object", "nothing")
    try:
        check_yaml_depth(text, max_nodes=_MAX_NODES)
        documents = []
        for document in yaml.load_all(text, Loader=StrictLoader):
            documents.append(document)
            if len(documents) > 1 and document is not None:
                raise _unsupported("one document", "several")
        if not documents:
            raise _unsupported("an object", "nothing but comments")
    except yaml.MarkedYAMLError as error:
        # Problems of libyaml can quote the content, and so do the lines that the error's own text would show.
        line = 0 if error.problem_mark is None else error.problem_mark.line + 1
        problem = error.problem if isinstance(error, ObjectYAMLError) else "it cannot be read"
        raise _unsupported("YAML or JSON", f"an error in line {line}: {problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise _unsupported("YAML or JSON", "something else") from None
    return documents[0]


def _unsupported(expected: str, found: str) -> ResolutionError:
    return ResolutionError(
        Reason.UNSUPPORTED_CONTENT, f"the content is no definition: expected {expected}, found {found}"
    )
