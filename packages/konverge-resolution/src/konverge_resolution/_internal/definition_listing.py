"""Listing of the definitions of a source, for a user who chooses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolver import FetchRequest

__all__ = ["ListedDefinition", "ListingResolver"]


@dataclass(frozen=True, slots=True)
class ListedDefinition:
    """One definition of a source.

    Args:
        params: The parameters that select it, besides those of the source.
        size_bytes: Its size in the source, which can be packed; None if the source does not know it.
        digest: The digest of the part of the source that has it.
        details: Further information: its version, its media type.
    """

    params: Mapping[str, str]
    size_bytes: int | None
    digest: str
    details: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class ListingResolver(Protocol):
    """Resolver that can list the definitions of a source: two methods besides those of `Resolver`."""

    def validate_listing(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the parameters of a source with their defaults, without those that select a definition.

        Raises:
            konverge_resolution.ResolutionError: ``InvalidParams`` with the name of the parameter.
        """

    async def list_definitions(self, fetch: FetchRequest) -> Sequence[ListedDefinition]:
        """Return the definitions of a source in its order.

        Raises:
            konverge_resolution.ResolutionError: The source cannot be read.
        """
