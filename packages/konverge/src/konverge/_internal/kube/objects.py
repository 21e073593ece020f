"""The identity of an object: its kind, and its key among the objects of that kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from konverge.errors import BadRequestError

__all__ = ["GroupVersionKind", "Object", "ObjectKey", "RestMapping", "format_identity"]

Object: TypeAlias = dict[str, Any]
"""A decoded Kubernetes object: mappings, lists, strings, numbers, booleans and None."""


class GroupVersionKind(NamedTuple):
    """The type of an object. The core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GroupVersionKind:
        """Parse the two fields of an object, for example ``apps/v1`` and ``Deployment``."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> GroupVersionKind:
        """Return the type of an object.

        Raises:
            ValueError: ``apiVersion`` or ``kind`` is missing or not a string.
        """
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not (isinstance(api_version, str) and api_version and isinstance(kind, str) and kind):
            raise ValueError(f"expected an object with apiVersion and kind, found {api_version!r} and {kind!r}")
        return _parse_api_version(api_version, kind)

    @property
    def api_version(self) -> str:
        """The text ``group/version``, or only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> tuple[str, str]:
        """The group and the kind, which all versions of a type share."""
        return self.group, self.kind

    @property
    def is_secret(self) -> bool:
        """True if objects of the kind are Secrets, whose values konverge never shows."""
        return self.kind == "Secret" and not self.group

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


@lru_cache(maxsize=1024)  # thousands of objects are of a few kinds
def _parse_api_version(api_version: str, kind: str) -> GroupVersionKind:
    return GroupVersionKind.parse(api_version, kind)


class ObjectKey(NamedTuple):
    """The key of an object in its kind: the namespace (empty for a cluster-scoped object) and the name."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> ObjectKey:
        """Return the key from an object's metadata; parts that are missing or not strings are empty strings."""
        metadata = obj.get("metadata")
        if type(metadata) is not dict and not isinstance(metadata, Mapping):  # the second check is slow
            return cls("", "")
        namespace, name = metadata.get("namespace"), metadata.get("name")
        return cls(namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else "")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class RestMapping:
    """The REST mapping of a kind: its plural, its scope, and the verbs and subresources that the server offers."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()
    categories: tuple[str, ...] = ()

    def build_path(self, key: ObjectKey | None = None, *, namespace: str = "", subresource: str = "") -> str:
        """Build the URL path of one object or of the collection.

        Args:
            key: The object; None for the collection.
            namespace: The namespace of the collection; empty for all namespaces.
            subresource: The subresource, for example ``status``; only with a key.

        Raises:
            BadRequestError: The name or the namespace would change the meaning of the path: ``..`` leads to another
                kind, and without a name a delete removes the whole collection.
        """
        group = f"/apis/{self.gvk.group}" if self.gvk.group else "/api"
        if key is not None:
            namespace = key.namespace
        parts = [f"{group}/{self.gvk.version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{_quote_segment(namespace, 'namespace')}")
        parts.append(self.plural)
        if key is not None:
            parts.append(_quote_segment(key.name, f"name of a {self.gvk.kind}"))
            if subresource:
                parts.append(subresource)
        return "/".join(parts)


def _quote_segment(text: str, role: str) -> str:
    reason = "may not be empty" if not text else f"may not be '{text}'" if text in (".", "..") else ""
    for letter in "/%":
        if letter in text:
            reason = f"may not contain '{letter}'"
    if reason:
        raise BadRequestError(f'"{text}" cannot be the {role}: it {reason}')
    return text


def format_identity(gvk: GroupVersionKind, key: ObjectKey) -> str:
    """Format ``apps/v1/Deployment/default/frontend``, or without the namespace if cluster-scoped (specification)."""
    return f"{gvk.api_version}/{gvk.kind}/{key}"
