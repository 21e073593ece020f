"""What an owner has asked for: there, on its way, or not to be had; and how a component waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.kube import Object, ObjectKey
from konverge.primitives import ConfigMap, Data
from konverge.primitives.lifecycle import UNBLOCKED, GuardResult, blocked
from konverge.resolution.consuming.copies import Definition, read_copy
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reference import shown_address
from konverge.resolution.written import WrittenReference

__all__ = ["Asked", "Underway", "shown"]

_PLACES = ("url", "bundle", "repo", "name")


@dataclass(frozen=True, slots=True)
class Underway:
    """Nothing has come of a reference yet.

    Args:
        doubt: Why nothing may ever come of it, and what to do about that; empty when there is no sign of it.
    """

    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A definition that an owner has asked for, as it stands in this pass.

    Args:
        name: What the owner calls it.
        what: What was asked for, for people.
        copy: Where the owner's copy is or will be.
        owner_uid: Whose.
        definition: The definition; None before it is there.
        error: Why it cannot be had; None when it is there or on its way.
        doubt: Why it may never come, as in `Underway`; empty when there is no sign of that.
    """

    name: str
    what: str
    copy: ObjectKey
    owner_uid: str
    definition: Definition | None = None
    error: ResolutionError | None = None
    doubt: str = ""

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
        return f"{self.name}: resolving {self.what}" + (f"; {self.doubt}" if self.doubt else "")

    def get(self) -> Definition | None:
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

    def into(self, cell: Data[Definition]) -> ConfigMap:
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
            "metadata": {"name": self.copy.name, "namespace": self.copy.namespace},
        }
        return ConfigMap(
            copy, guard=self.guard, extract=cell.extracted_by(lambda live: read_copy(live, self.owner_uid))
        )


def shown(written: WrittenReference) -> str:
    """What is asked for, for people: without parameters that may name a Secret, and without a user in an address."""
    return " or ".join(_one(each.resolver, each.params) for each in written.choices)


def _one(resolver: str, params: object) -> str:
    given = params if isinstance(params, dict) else {}
    place = next((given[name] for name in _PLACES if isinstance(given.get(name), str)), "")
    return f"{resolver} {shown_address(place)[:120]}".rstrip()
