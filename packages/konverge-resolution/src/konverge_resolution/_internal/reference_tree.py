"""Resolution of a definition and everything that it refers to, level by level."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from konverge.clock import Clock
from konverge_resolution._internal.engine import Requester, ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Reference, to_canonical_json
from konverge_resolution._internal.reference_parsing import ParsedReference, find_references, parse_reference
from konverge_resolution._internal.relative_references import ParentDefinition, build_relative_reference
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.source_failover import ReferenceResolver, resolve_first

__all__ = ["TreeNode", "resolve_tree"]

_MAX_DEPTH, _MAX_NODES = 16, 200


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One definition of a tree of references.

    Args:
        field_path: The field with the reference in the definition of `parent`; empty for a root.
        reference: The reference that was resolved, with paths made absolute; of several sources the successful one.
        result: The result of its resolution.
        parent: The index of the first definition that refers to it; None for a root.
    """

    field_path: str
    reference: Reference
    result: ResolutionResult
    parent: int | None = None

    @property
    def parent_definition(self) -> ParentDefinition:
        """The definition as the parent of its references."""
        return ParentDefinition(self.reference, self.result.resolved)


async def resolve_tree(
    source: ReferenceResolver,
    registry: ResolverRegistry,
    roots: Sequence[ParsedReference],
    requester: Requester,
    *,
    clock: Clock,
    seconds: float | None = None,
) -> list[TreeNode]:
    """Resolve definitions and everything that they refer to, each once, also with circular references.

    All references of one level are resolved concurrently.

    Args:
        source: Resolves each reference.
        registry: The resolvers, for relative paths.
        roots: The first references.
        requester: The namespace and user of the request.
        clock: The clock.
        seconds: Time limit in seconds for the whole tree.

    Returns:
        The roots in their order, then the definitions that they refer to, level by level.

    Raises:
        ResolutionError: A definition cannot be resolved; the message has the definition and field of the reference.
    """
    ends = None if seconds is None else clock.monotonic() + seconds
    wanted: list[tuple[str, int | None, ParsedReference]] = [("", None, root) for root in roots]
    found: list[TreeNode] = []
    seen: set[bytes] = set()
    for _ in range(_MAX_DEPTH):
        level: list[tuple[str, int | None, tuple[Reference, ...]]] = []
        for where, parent, written in wanted:
            with _name_field_in_errors(where, parent, found):
                choices = written.choices or (_resolve_path(registry, found, parent, written),)
            key = to_canonical_json([[choice.resolver, choice.params, str(choice.digest)] for choice in choices])
            if key not in seen or parent is None:
                seen.add(key)
                level.append((where, parent, choices))
        if len(found) + len(level) > _MAX_NODES:
            raise ResolutionError(Reason.TOO_LARGE, f"expected at most {_MAX_NODES} definitions in a tree, found more")
        left = None if ends is None else max(0.0, ends - clock.monotonic())
        answers = await asyncio.gather(
            *(resolve_first(source, choices, requester, clock=clock, seconds=left) for *_, choices in level),
            return_exceptions=True,
        )
        wanted = []
        first = len(found)
        for (where, parent, _), answer in zip(level, answers, strict=True):
            with _name_field_in_errors(where, parent, found):
                if isinstance(answer, BaseException):
                    raise answer
            found.append(TreeNode(where, *answer, parent))
        for index in range(first, len(found)):
            for where, value in find_references(found[index].result.object):
                with _name_field_in_errors(where, index, found):
                    written = parse_reference(value, where=where)
                wanted.append((where, index, written))
        if not wanted:
            return found
    raise ResolutionError(Reason.TOO_LARGE, f"expected at most {_MAX_DEPTH} levels of references, found more")


def _resolve_path(
    registry: ResolverRegistry, found: Sequence[TreeNode], parent: int | None, written: ParsedReference
) -> Reference:
    if parent is None:
        message = f"path {written.path[:120]!r}: expected a definition that contains it; name a resolver"
        raise ResolutionError(Reason.INVALID_PARAMETERS, message)
    return build_relative_reference(registry, found[parent].parent_definition, written.path, digest=written.digest)


@contextmanager
def _name_field_in_errors(where: str, parent: int | None, found: Sequence[TreeNode]) -> Iterator[None]:
    """Add the definition and the field of a reference to errors of the block."""
    try:
        yield
    except ResolutionError as error:
        if parent is None:
            raise
        message = f"{where} of {found[parent].result.resolved.source}: {error.message}"
        raise ResolutionError(
            error.reason, message, retry_after_seconds=error.retry_after_seconds, field_path=where
        ) from None
