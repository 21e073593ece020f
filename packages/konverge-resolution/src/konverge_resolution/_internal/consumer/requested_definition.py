"""State of a requested definition, and how a component waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.primitives import ConfigMap, Data
from konverge._internal.primitives.resource_protocol import UNBLOCKED, GuardResult, blocked
from konverge_resolution._internal.consumer.remote_definition import RemoteDefinition, parse_config_map
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reference import redact_source
from konverge_resolution._internal.reference_parsing import ParsedReference

__all__ = ["PendingFetch", "RequestedDefinition", "format_reference"]

_PLACES = ("url", "bundle", "repo", "name")


@dataclass(frozen=True, slots=True)
class PendingFetch:
    """Fetch of a reference that has no result yet.

    Args:
        stall_reason: The reason why it may never end, and how to correct that; empty if there is no sign of that.
    """

    stall_reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestedDefinition:
    """Requested definition with its state in this reconcile.

    Args:
        name: The owner's name for it.
        description: The reference in readable form.
        config_map_key: The name of the owner's copy.
        owner_uid: The UID of the owner.
        definition: The definition; None before it is available.
        error: The error of its resolution; None without one.
        stall_reason: The reason why it may never be available, as in `PendingFetch`; empty if there is no sign of that.
    """

    name: str
    description: str
    config_map_key: ObjectKey
    owner_uid: str
    definition: RemoteDefinition | None = None
    error: ResolutionError | None = None
    stall_reason: str = ""

    @property
    def is_resolving(self) -> bool:
        """Tell whether it has neither a result nor an error."""
        return self.definition is None and self.error is None

    @property
    def message(self) -> str:
        """The state in one sentence."""
        if self.definition is not None:
            source = self.definition.source
            version = ", ".join(f"{name}:{value}" for name, value in source.digest.items())
            part = f" ({source.entry_point})" if source.entry_point else ""
            return f"{self.name}: from {source.uri}{part} at {version}"
        if self.error is not None:
            return f"{self.name}: {self.error.reason}: {self.error.message}"
        return f"{self.name}: resolving {self.description}" + (f"; {self.stall_reason}" if self.stall_reason else "")

    def get(self) -> RemoteDefinition | None:
        """Return the definition; None while it is fetched.

        Raises:
            ResolutionError: It cannot be resolved.
        """
        if self.error is not None:
            raise self.error
        return self.definition

    def guard(self, desired: Object) -> GuardResult:
        """Block a resource of a component until the definition is available: for ``guard=``.

        The component is blocked until then, and its condition reports the state or the error.
        """
        return UNBLOCKED if self.definition is not None else blocked(self.message)

    def as_resource(self, cell: Data[RemoteDefinition]) -> ConfigMap:
        """Return a resource that stores the definition in a cell, for the later resources of a component.

        ::

            template: Data[RemoteDefinition] = Data("template")
            builder.with_resource(requested.as_resource(template), read_only())
            builder.with_resource(Deployment(web, requires=template, mutations=...))

        Args:
            cell: The cell.
        """
        copy = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.config_map_key.name, "namespace": self.config_map_key.namespace},
        }
        return ConfigMap(
            copy, guard=self.guard, extract=cell.fill_with(lambda live: parse_config_map(live, self.owner_uid))
        )


def format_reference(written: ParsedReference) -> str:
    """Format a reference for messages, without names of Secrets and without a user in an address."""
    return " or ".join(_format_choice(choice.resolver, choice.params) for choice in written.choices)


def _format_choice(resolver: str, params: object) -> str:
    given = params if isinstance(params, dict) else {}
    place = next((given[name] for name in _PLACES if isinstance(given.get(name), str)), "")
    return f"{resolver} {redact_source(place)[:120]}".rstrip()
