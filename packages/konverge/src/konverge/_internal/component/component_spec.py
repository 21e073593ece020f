"""The data of a component: its resources with their treatment, its gate, prerequisites and grace period.

The engine and the tools that inspect a component read this data. `konverge.component.Component` adds the public
methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from konverge._internal.component.prerequisites import Prerequisite
from konverge._internal.component.resource_options import ResourceTreatment
from konverge._internal.feature import Gate
from konverge._internal.primitives.data_cells import Data
from konverge._internal.primitives.resource_protocol import Resource

__all__ = ["ComponentSpec", "RegisteredResource", "Unplannable"]


@dataclass(frozen=True, slots=True)
class Unplannable:
    """The reason why the desired object of a resource cannot be known in this reconcile.

    Args:
        reason: The reason, as the component's condition reports it.
        is_failure: True if the reconcile fails with the reason; False if the component waits, blocked.
    """

    reason: str
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class RegisteredResource:
    """A resource as it is registered.

    Args:
        resource: The resource.
        treatment: The effect of its options.
        unplannable: The reason why its desired object is not known; None for a resource that can be rendered.
        is_managed_later: True for a read-only registration of an object that a later one manages.
    """

    resource: Resource
    treatment: ResourceTreatment
    unplannable: Unplannable | None = None
    is_managed_later: bool = False

    @property
    def identity(self) -> str:
        """The identity of the resource: kind, namespace and name."""
        return self.resource.identity

    @property
    def counts_health(self) -> bool:
        """True if the health of the object counts for the component."""
        return not (self.treatment.is_auxiliary or self.is_managed_later)


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """The parts of a component.

    Args:
        name: The name of the component; part of its field manager.
        condition_type: The condition on the owner that reports the component.
        entries: The resources, in the order in which they are processed.
        gate: The feature gate: while it is off, the objects of the component are deleted. None is always on.
        prerequisites: The prerequisites that must be met before the component begins, in the order of the checks.
        grace_period: The time to converge before the component is graded; zero never ends.
        is_suspended: True if the component is suspended.
        cells: The data cells of the resources.
        construction_errors: The errors of author code that constructs resources; with any, each reconcile fails.
    """

    name: str
    condition_type: str
    entries: tuple[RegisteredResource, ...] = ()
    gate: Gate | None = None
    prerequisites: tuple[Prerequisite, ...] = ()
    grace_period: timedelta = timedelta(0)
    is_suspended: bool = False
    cells: tuple[Data[Any], ...] = ()
    construction_errors: tuple[str, ...] = ()

    @property
    def has_deletion_waves(self) -> bool:
        """True if an object is deleted in a wave of its owner's deletion (`konverge.options.deletion_wave`)."""
        return any(entry.treatment.deletion_wave is not None for entry in self.entries)

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields of each log record about the component."""
        return {"component": self.name, "condition": self.condition_type}
