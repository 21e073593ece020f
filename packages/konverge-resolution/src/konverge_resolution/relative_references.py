"""Relative references: a path beside the definition in which it stands, in the same version of the same source.

What was fetched from a branch knows the commit that the branch was then; what it refers to by a path comes from that
commit, whatever the branch is by now. No path leads out of the source. What a path means is the resolver's to say
(`RelativeResolver`); the reference that comes of it goes through the engine as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Digest, Parameters, Reference
from konverge_resolution.resolution_plan import ENGINE_PARAMETERS
from konverge_resolution.resolved_content import ResolvedContent
from konverge_resolution.resolver_registry import InstalledResolver, ResolverRegistry

__all__ = ["ParentDefinition", "RelativeResolver", "build_relative_reference", "join_path"]


@runtime_checkable
class RelativeResolver(Protocol):
    """A resolver whose definitions can refer to each other by paths: one optional method beside those of `Resolver`."""

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        """The parameters of what is at a path beside what these parameters name, in the same version.

        Args:
            params: Those of the definition that has the path: pinned, where the source has such names.
            path: As it was written.

        Raises:
            konverge_resolution.ResolutionError: ``InvalidParams``: it is no path, or leads out of the source.
        """


@dataclass(frozen=True, slots=True)
class ParentDefinition:
    """A definition that refers to others.

    Args:
        reference: What it was asked for by.
        resolved: What came.
    """

    reference: Reference
    resolved: ResolvedContent

    @property
    def pinned_reference(self) -> Reference:
        """The reference that names for ever what was fetched, as far as its source has such names."""
        if not self.resolved.pinned:
            return Reference(self.reference.resolver, self.reference.params, unpinned=self.reference.unpinned)
        reference = self.reference
        kept = {name: reference.params[name] for name in ENGINE_PARAMETERS if name in reference.params}
        asked = reference.params if reference.unpinned is None else reference.unpinned
        return Reference(reference.resolver, {**self.resolved.pinned, **kept}, unpinned=asked)


def build_relative_reference(
    registry: ResolverRegistry, parent: ParentDefinition, path: str, *, digest: Digest | None = None
) -> Reference:
    """The reference that a path stands for.

    Args:
        registry: The resolvers.
        parent: The definition in which it stands.
        path: The path.
        digest: What the content has to be.

    Raises:
        ResolutionError: ``InvalidParams``: it leads out of the source, or the source knows no paths.
    """
    settled = parent.pinned_reference
    installed = registry.get(settled.resolver)
    resolver = installed.resolver
    if not isinstance(resolver, RelativeResolver):
        message = f"path {path[:120]!r}: resolver {settled.resolver!r} has no relative references; name a resolver"
        raise ResolutionError(Reason.INVALID_PARAMETERS, message)
    kept = {name: value for name, value in settled.params.items() if name in ENGINE_PARAMETERS}
    params = {name: value for name, value in settled.params.items() if name not in ENGINE_PARAMETERS}
    found = resolver.resolve_relative(params, path)
    unpinned = None if settled.unpinned is None else _unpin_params(installed, params, found, settled.unpinned)
    unpinned = None if unpinned is None else {**unpinned, **kept}
    return Reference(settled.resolver, {**found, **kept}, digest, unpinned)


def _unpin_params(
    installed: InstalledResolver, pinned: Parameters, found: Parameters, asked: Parameters
) -> Parameters | None:
    """What a path names, by the names of its container before it was pinned; None when these cannot be read.

    Args:
        installed: The resolver.
        pinned: The parameters of the container.
        found: Those of what the path names.
        asked: What the container was asked for by.
    """
    try:
        settings = installed.select_settings(asked)
        given = {name: value for name, value in asked.items() if name not in ENGINE_PARAMETERS}
        taken = installed.resolver.validate(given, settings)
    except ResolutionError:
        return None  # policies judge the pin
    names = [name for name, value in found.items() if pinned.get(name) == value != taken.get(name)]
    kept = {name: value for name, value in found.items() if name not in names}
    return {**kept, **{name: taken[name] for name in names if name in taken}}


def join_path(file: str, path: str) -> str:
    """The path that another one leads to from a file, without ``.`` and ``..``; both count from the source's root.

    Args:
        file: The file that has the path, from the root.
        path: What stands in it; with ``/`` at its beginning it counts from the root.

    Raises:
        ResolutionError: ``InvalidParams``: it is no path of a file, or leads out of the root.
    """
    if not path or path.endswith("/") or "\\" in path or not path.isprintable():
        raise _build_error(path, "expected the path of a file")
    found = [] if path.startswith("/") else [part for part in file.split("/") if part][:-1]
    for part in path.split("/"):
        if part in ("", "."):
            continue
        # Written in another way it would be looked at by nobody here, and read by the server as what it stands for.
        if part != ".." and ("/" in unquote(part) or unquote(part) in (".", "..") or "\\" in unquote(part)):
            raise _build_error(path, "expected no encoded . .. or /")
        if part != "..":
            found.append(part)
        elif found:
            found.pop()
        else:
            raise _build_error(path, "it leads out of its source")
    if not found or path.split("/")[-1] in (".", ".."):
        raise _build_error(path, "expected the path of a file")
    return "/".join(found)


def _build_error(path: str, why: str) -> ResolutionError:
    return ResolutionError(Reason.INVALID_PARAMETERS, f"path {path[:120]!r}: {why}")
