"""Relative references: a path beside the definition in which it stands, in the same version of the same source.

What was fetched from a branch knows the commit that the branch was then; what it refers to by a path comes from that
commit, whatever the branch is by now. No path leads out of the source. What a path means is the resolver's to say
(`Relative`); the reference that comes of it goes through the engine as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from konverge.resolution.errors import ResolutionError
from konverge.resolution.planning import OF_THE_ENGINE
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Digest, Parameters, Reference
from konverge.resolution.registry import Installed, Registry
from konverge.resolution.result import Resolved
from konverge.resolution.settings import CONFIG_KEY

__all__ = ["Container", "Relative", "beside", "relative_reference"]


@runtime_checkable
class Relative(Protocol):
    """A resolver whose definitions can refer to each other by paths: one optional method beside those of `Resolver`."""

    def relative(self, params: Parameters, path: str) -> Parameters:
        """The parameters of what is at a path beside what these parameters name, in the same version.

        Args:
            params: Those of the definition that has the path: pinned, where the source has such names.
            path: As it was written.

        Raises:
            konverge.resolution.ResolutionError: ``InvalidParams``: it is no path, or leads out of the source.
        """


@dataclass(frozen=True, slots=True)
class Container:
    """A definition that refers to others.

    Args:
        reference: What it was asked for by.
        resolved: What came.
    """

    reference: Reference
    resolved: Resolved

    @property
    def settled(self) -> Reference:
        """The reference that names for ever what was fetched, as far as its source has such names."""
        if not self.resolved.pinned:
            return Reference(self.reference.resolver, self.reference.params, unpinned=self.reference.unpinned)
        reference = self.reference
        kept = {name: reference.params[name] for name in OF_THE_ENGINE if name in reference.params}
        asked = reference.params if reference.unpinned is None else reference.unpinned
        return Reference(reference.resolver, {**self.resolved.pinned, **kept}, unpinned=asked)


def relative_reference(
    registry: Registry, container: Container, path: str, *, digest: Digest | None = None
) -> Reference:
    """The reference that a path stands for.

    Args:
        registry: The resolvers.
        container: The definition in which it stands.
        path: The path.
        digest: What the content has to be.

    Raises:
        ResolutionError: ``InvalidParams``: it leads out of the source, or the source knows no paths.
    """
    settled = container.settled
    installed = registry.get(settled.resolver)
    resolver = installed.resolver
    if not isinstance(resolver, Relative):
        told = f"path {path[:120]!r}: resolver {settled.resolver!r} has no relative references; name a resolver"
        raise ResolutionError(Reason.INVALID_PARAMETERS, told)
    kept = {name: value for name, value in settled.params.items() if name in OF_THE_ENGINE}
    params = {name: value for name, value in settled.params.items() if name not in OF_THE_ENGINE}
    found = resolver.relative(params, path)
    unpinned = None if settled.unpinned is None else _unpinned(installed, params, found, settled.unpinned)
    unpinned = None if unpinned is None else {**unpinned, **kept}
    return Reference(settled.resolver, {**found, **kept}, digest, unpinned)


def _unpinned(installed: Installed, pinned: Parameters, found: Parameters, asked: Parameters) -> Parameters | None:
    """What a path names, by the names of its container before it was pinned; None when these cannot be read.

    Args:
        installed: The resolver.
        pinned: The parameters of the container.
        found: Those of what the path names.
        asked: What the container was asked for by.
    """
    config_key = asked.get(CONFIG_KEY, "")
    try:
        settings = installed.settings.chosen(config_key if isinstance(config_key, str) else "")
        given = {name: value for name, value in asked.items() if name not in OF_THE_ENGINE}
        taken = installed.resolver.validate(given, settings)
    except ResolutionError:
        return None  # policies judge the pin
    names = [name for name, value in found.items() if pinned.get(name) == value != taken.get(name)]
    kept = {name: value for name, value in found.items() if name not in names}
    return {**kept, **{name: taken[name] for name in names if name in taken}}


def beside(file: str, path: str) -> str:
    """The path that another one leads to from a file, without ``.`` and ``..``; both count from the source's root.

    Args:
        file: The file that has the path, from the root.
        path: What stands in it; with ``/`` at its beginning it counts from the root.

    Raises:
        ResolutionError: ``InvalidParams``: it is no path of a file, or leads out of the root.
    """
    if not path or path.endswith("/") or "\\" in path or not path.isprintable():
        raise _refused(path, "expected the path of a file")
    found = [] if path.startswith("/") else [part for part in file.split("/") if part][:-1]
    for part in path.split("/"):
        if part in ("", "."):
            continue
        # Written in another way it would be looked at by nobody here, and read by the server as what it stands for.
        if part != ".." and ("/" in unquote(part) or unquote(part) in (".", "..") or "\\" in unquote(part)):
            raise _refused(path, "expected no encoded . .. or /")
        if part != "..":
            found.append(part)
        elif found:
            found.pop()
        else:
            raise _refused(path, "it leads out of its source")
    if not found or path.split("/")[-1] in (".", ".."):
        raise _refused(path, "expected the path of a file")
    return "/".join(found)


def _refused(path: str, why: str) -> ResolutionError:
    return ResolutionError(Reason.INVALID_PARAMETERS, f"path {path[:120]!r}: {why}")
