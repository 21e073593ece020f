"""What a component is: its resources and how each is treated, when it is at work, and how long it may take.

Data alone. The engine works on it, and so does whatever looks at a component without running it; what an author can ask
of one is `konverge.component.Component`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from konverge.component.prerequisites import Prerequisite
from konverge.component.resource_options import ResourceTreatment
from konverge.feature import Gate
from konverge.primitives.data_cells import Data
from konverge.primitives.resource_protocol import Resource

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
    """

    resource: Resource
    treatment: ResourceTreatment
    unplannable: Unplannable | None = None

    @property
    def identity(self) -> str:
        """The resource's identity."""
        return self.resource.identity


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """What a component is made of.

    Args:
        name: The component's name; part of its field manager.
        condition_type: The condition on the owner through which it reports.
        entries: Its resources, in the order in which they are processed.
        gate: While it is off there is nothing of the component; None is always on.
        prerequisites: What has to be met before it begins, in the order in which they are asked.
        grace_period: How long it may converge before it is graded; zero is forever.
        is_suspended: Whether it is to be at rest.
        cells: The data cells of its resources.
        construction_errors: What went wrong in the author's code that was to construct its resources; with any, each
        pass fails.
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
    def log_fields(self) -> dict[str, str]:
        """What a log record about the component carries."""
        return {"component": self.name, "condition": self.condition_type}
