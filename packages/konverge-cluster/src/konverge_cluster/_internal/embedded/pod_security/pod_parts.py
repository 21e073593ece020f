"""The parts of a pod that several checks read, and the wording that all checks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["PodParts", "Violation", "count_word", "find_containers", "list_setters", "quote_all"]


class Violation(NamedTuple):
    """The result of a check that a pod fails.

    Attributes:
        reason: The violated rule in a few words.
        detail: The containers, volumes or values that violate it.
    """

    reason: str
    detail: str


class PodParts(NamedTuple):
    """A pod or a pod template.

    Attributes:
        annotations: The annotations.
        spec: The spec.
    """

    annotations: Mapping[str, str]
    spec: Mapping[str, Any]

    @property
    def context(self) -> Mapping[str, Any]:
        """The security context of the pod; empty if absent."""
        return self.spec.get("securityContext") or {}

    @property
    def is_windows(self) -> bool:
        """True if the pod declares the operating system Windows."""
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_user_namespace(self) -> bool:
        """True if the pod does not use the users of the node."""
        return self.spec.get("hostUsers") is False

    def iter_containers(self) -> Iterator[Mapping[str, Any]]:
        """Iterate over the containers in the order in which messages name them."""
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(kind) or ()


def find_containers(pod: PodParts, is_bad: Callable[[Mapping[str, Any]], bool]) -> list[str]:
    """Return the names of the containers whose security context (empty if absent) is bad."""
    return [entry.get("name", "") for entry in pod.iter_containers() if is_bad(entry.get("securityContext") or {})]


def count_word(word: str, count: int) -> str:
    """Return the word, in the plural unless the count is one."""
    return word if count == 1 else f"{word}s"


def quote_all(names: Iterable[str]) -> str:
    """Return the names in quotes."""
    return ", ".join(f'"{name}"' for name in names)


def list_setters(containers: list[str], *, by_pod: bool = False) -> str:
    """Return what sets a field: the pod, containers, or both; empty if nothing does."""
    setters = ["pod"] if by_pod else []
    if containers:
        setters.append(f"{count_word('container', len(containers))} {quote_all(containers)}")
    return " and ".join(setters)
