"""Relative references: a path relative to the definition that contains it, in the same version of its source.

A definition that was fetched from a branch records the commit. Its relative references are resolved in that commit,
even if the branch moves. No path leaves the source. The resolver defines the meaning of a path (`RelativeResolver`);
the resulting reference goes through the engine like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters, Reference
from konverge_resolution._internal.resolution_plan import ENGINE_PARAMETERS
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.resolver_registry import InstalledResolver, ResolverRegistry

__all__ = ["ParentDefinition", "RelativeResolver", "build_relative_reference", "join_path"]


@runtime_checkable
class RelativeResolver(Protocol):
    """Resolver that supports references by path between definitions: one method besides those of `Resolver`."""

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        """Return the parameters for a path relative to these parameters, in the same version.

        Args:
            params: The parameters of the definition with the path: pinned, where the source has permanent names.
            path: The path as it was written.

        Raises:
            konverge_resolution.ResolutionError: ``InvalidParams``: the text is not a path, or leaves the source.
        """


@dataclass(frozen=True, slots=True)
class ParentDefinition:
    """Definition that refers to others by path.

    Args:
        reference: The reference that was resolved.
        resolved: The content and its source.
    """

    reference: Reference
    resolved: ResolvedContent

    @property
    def pinned_reference(self) -> Reference:
        """The reference with the pinned parameters of the content, as far as its source has permanent names."""
        if not self.resolved.pinned:
            return Reference(self.reference.resolver, self.reference.params, unpinned=self.reference.unpinned)
        reference = self.reference
        kept = {name: reference.params[name] for name in ENGINE_PARAMETERS if name in reference.params}
        asked = reference.params if reference.unpinned is None else reference.unpinned
        return Reference(reference.resolver, {**self.resolved.pinned, **kept}, unpinned=asked)


def build_relative_reference(
    registry: ResolverRegistry, parent: ParentDefinition, path: str, *, digest: Digest | None = None
) -> Reference:
    """Return the absolute reference for a path.

    Args:
        registry: The resolvers.
        parent: The definition that contains the path.
        path: The path.
        digest: The expected digest of the content.

    Raises:
        ResolutionError: ``InvalidParams``: the path leaves the source, or the resolver supports no paths.
    """
    settled = parent.pinned_reference
    installed = registry.get(settled.resolver)
    resolver = installed.resolver
    if not isinstance(resolver, RelativeResolver):
        message = f"path {path[:120]!r}: resolver {settled.resolver!r} supports no relative references; name a resolver"
        raise ResolutionError(Reason.INVALID_PARAMETERS, message)
    kept = {name: value for name, value in settled.params.items() if name in ENGINE_PARAMETERS}
    params = {name: value for name, value in settled.params.items() if name not in ENGINE_PARAMETERS}
    relative = resolver.resolve_relative(params, path)
    unpinned = None if settled.unpinned is None else _unpin_params(installed, params, relative, settled.unpinned)
    unpinned = None if unpinned is None else {**unpinned, **kept}
    return Reference(settled.resolver, {**relative, **kept}, digest, unpinned)


def _unpin_params(
    installed: InstalledResolver, pinned: Parameters, relative: Parameters, asked: Parameters
) -> Parameters | None:
    """Return the parameters of a path with the unpinned version of its parent; None if those cannot be validated.

    Args:
        installed: The resolver.
        pinned: The pinned parameters of the parent.
        relative: The parameters of the path.
        asked: The unpinned parameters of the parent.
    """
    try:
        settings = installed.select_settings(asked)
        given = {name: value for name, value in asked.items() if name not in ENGINE_PARAMETERS}
        taken = installed.resolver.validate(given, settings)
    except ResolutionError:
        return None  # policies check the pin instead
    names = [name for name, value in relative.items() if pinned.get(name) == value != taken.get(name)]
    kept = {name: value for name, value in relative.items() if name not in names}
    return {**kept, **{name: taken[name] for name in names if name in taken}}


def join_path(file: str, path: str) -> str:
    """Return a path relative to a file as a path from the root of the source, without ``.`` and ``..``.

    Args:
        file: The file that contains the path, from the root.
        path: The path; with a leading ``/`` it starts at the root.

    Raises:
        ResolutionError: ``InvalidParams``: the text is not the path of a file, or leaves the root.
    """
    if not path or path.endswith("/") or "\\" in path or not path.isprintable():
        raise _build_error(path, "expected the path of a file")
    parts = [] if path.startswith("/") else [part for part in file.split("/") if part][:-1]
    for part in path.split("/"):
        if part in ("", "."):
            continue
        # An encoded form would pass these checks, but the server would decode it.
        if part != ".." and ("/" in unquote(part) or unquote(part) in (".", "..") or "\\" in unquote(part)):
            raise _build_error(path, "expected a path without encoded . .. or /")
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            raise _build_error(path, "expected a path within the source")
    if not parts or path.split("/")[-1] in (".", ".."):
        raise _build_error(path, "expected the path of a file")
    return "/".join(parts)


def _build_error(path: str, why: str) -> ResolutionError:
    return ResolutionError(Reason.INVALID_PARAMETERS, f"path {path[:120]!r}: {why}")
