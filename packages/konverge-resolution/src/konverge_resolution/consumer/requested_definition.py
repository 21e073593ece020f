"""What an owner has asked for: there, on its way, or not to be had; and how a component waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.kube import Object, ObjectKey
from konverge.primitives import ConfigMap, Data
from konverge.primitives.resource_protocol import UNBLOCKED, GuardResult, blocked
from konverge_resolution.consumer.remote_definition import RemoteDefinition, parse_config_map
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reference import redact_source
from konverge_resolution.reference_parsing import ParsedReference

__all__ = ["PendingFetch", "RequestedDefinition", "format_reference"]

_PLACES = ("url", "bundle", "repo", "name")


@dataclass(frozen=True, slots=True)
class PendingFetch:
    """Nothing has come of a reference yet.

    Args:
        stall_reason: Why nothing may ever come of it, and what to do about that; empty when there is no sign of it.
    """

    stall_reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestedDefinition:
    """A definition that an owner has asked for, as it stands in this pass.

    Args:
        name: What the owner calls it.
        description: What was asked for, for people.
        config_map_key: Where the owner's copy is or will be.
        owner_uid: Whose.
        definition: The definition; None before it is there.
        error: Why it cannot be had; None when it is there or on its way.
        stall_reason: Why it may never come, as in `PendingFetch`; empty when there is no sign of that.
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
        """Tell whether it is on its way."""
        return self.definition is None and self.error is None

    @property
    def message(self) -> str:
        """How far it is, in one sentence."""
        if self.definition is not None:
            source = self.definition.source
            version = ", ".join(f"{name}:{value}" for name, value in source.digest.items())
            part = f" ({source.entry_point})" if source.entry_point else ""
            return f"{self.name}: from {source.uri}{part} at {version}"
        if self.error is not None:
            return f"{self.name}: {self.error.reason}: {self.error.message}"
        return f"{self.name}: resolving {self.description}" + (f"; {self.stall_reason}" if self.stall_reason else "")

    def get(self) -> RemoteDefinition | None:
        """The definition; None while it is on its way.

        Raises:
            ResolutionError: It cannot be had.
        """
        if self.error is not None:
            raise self.error
        return self.definition

    def guard(self, desired: Object) -> GuardResult:
        """Let a resource of a component wait for it: for ``guard=``.

        The component is blocked until it is there, and says what it waits for, or why it waits in vain.
        """
        return UNBLOCKED if self.definition is not None else blocked(self.message)

    def as_resource(self, cell: Data[RemoteDefinition]) -> ConfigMap:
        """A resource that fills a cell with it, for the later resources of a component.

        ::

            template: Data[Definition] = Data("template")
            builder.with_resource(asked.into(template), read_only())
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
    """What is asked for, for people: without parameters that may name a Secret, and without a user in an address."""
    return " or ".join(_format_choice(each.resolver, each.params) for each in written.choices)


def _format_choice(resolver: str, params: object) -> str:
    given = params if isinstance(params, dict) else {}
    place = next((given[name] for name in _PLACES if isinstance(given.get(name), str)), "")
    return f"{resolver} {redact_source(place)[:120]}".rstrip()
