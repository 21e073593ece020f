"""Identity: which kind an object is of, and which of that kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from konverge.errors import BadRequestError

__all__ = ["GroupVersionKind", "Object", "ObjectKey", "RestMapping", "format_identity"]

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as JSON gives it: mappings, lists, strings, numbers, booleans and None."""


class GroupVersionKind(NamedTuple):
    """The type of an object. The core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GroupVersionKind:
        """From the two fields that objects carry, for example ``apps/v1`` and ``Deployment``."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> GroupVersionKind:
        """The type that an object says it has.

        Raises:
            ValueError: It does not say, or not with strings.
        """
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not (isinstance(api_version, str) and api_version and isinstance(kind, str) and kind):
            raise ValueError(f"an object needs apiVersion and kind (found {api_version!r} and {kind!r})")
        return _parse_api_version(api_version, kind)

    @property
    def api_version(self) -> str:
        """``group/version``, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> tuple[str, str]:
        """What stays the same when the version changes."""
        return self.group, self.kind

    @property
    def is_secret(self) -> bool:
        """Tell whether the values in such an object are to be shown nowhere."""
        return self.kind == "Secret" and not self.group

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


@lru_cache(maxsize=1024)  # objects come by the thousand, of a few kinds
def _parse_api_version(api_version: str, kind: str) -> GroupVersionKind:
    return GroupVersionKind.parse(api_version, kind)


class ObjectKey(NamedTuple):
    """Which object of a kind: the namespace (empty for a cluster-scoped object) and the name."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> ObjectKey:
        """The key that an object's metadata gives; parts that are missing, or no strings, are empty strings."""
        metadata = obj.get("metadata")
        if type(metadata) is not dict and not isinstance(metadata, Mapping):  # the second question is a slow one
            return cls("", "")
        namespace, name = metadata.get("namespace"), metadata.get("name")
        return cls(namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else "")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class RestMapping:
    """Where the server serves a kind (a REST mapping): its plural, its scope, and what may be done with it."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()
    categories: tuple[str, ...] = ()

    def build_path(self, key: ObjectKey | None = None, *, namespace: str = "", subresource: str = "") -> str:
        """The URL path of one object, or of the collection.

        Args:
            key: The object; None for the collection.
            namespace: Narrows the collection; empty for all namespaces.
            subresource: For example ``status``; only with a key.

        Raises:
            BadRequestError: The name or the namespace would make it the path of something else: ``..`` names another
                kind, and with no name at all a delete means the whole collection.
        """
        group = f"/apis/{self.gvk.group}" if self.gvk.group else "/api"
        where = key.namespace if key is not None else namespace
        parts = [f"{group}/{self.gvk.version}"]
        if self.namespaced and where:
            parts.append(f"namespaces/{_quote_segment(where, 'namespace')}")
        parts.append(self.plural)
        if key is not None:
            parts.append(_quote_segment(key.name, f"name of a {self.gvk.kind}"))
            if subresource:
                parts.append(subresource)
        return "/".join(parts)


def _quote_segment(text: str, what: str) -> str:
    why = "may not be empty" if not text else f"may not be '{text}'" if text in (".", "..") else ""
    for letter in "/%":
        if letter in text:
            why = f"may not contain '{letter}'"
    if why:
        raise BadRequestError(f'"{text}" cannot be the {what}: it {why}')
    return text


def format_identity(gvk: GroupVersionKind, key: ObjectKey) -> str:
    """``apps/v1/Deployment/default/frontend``, without the namespace part when cluster-scoped (specification)."""
    return f"{gvk.api_version}/{gvk.kind}/{key}"
