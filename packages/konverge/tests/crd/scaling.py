"""A kind with everything that a definition can say, in two versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from konverge.crd import (
    CelRule,
    Metadata,
    PrintColumn,
    Scale,
    atomic,
    class_rules,
    custom_resource,
    embedded_resource,
    immutable,
    list_map,
)

GROUP = "scaling.konverge.test"


@dataclass
class Route:
    host: Annotated[str, Meta(max_length=63)]
    weight: Annotated[int, Meta(ge=0, le=100)] = 1


@class_rules(
    CelRule(
        "self.minReplicas <= self.maxReplicas",
        message_expression="self.maxReplicas > 1 ? 'more than several' : 'more than one'",
        reason="FieldValueForbidden",
        field_path=".minReplicas",
    )
)
@dataclass
class Bounds:
    min_replicas: int = 1
    max_replicas: int = 10


@dataclass
class FleetSpec:
    region: Annotated[str, immutable("a fleet does not move"), Meta(max_length=20)]
    replicas: int = 1
    bounds: Bounds = field(default_factory=Bounds)
    tier: Annotated[str, Meta(max_length=20)] = "free"
    routes: Annotated[
        list[Route],
        Meta(max_length=10),
        list_map("host"),
    ] = field(default_factory=list)
    arguments: Annotated[list[str], atomic()] = field(default_factory=list)
    labels: Annotated[dict[str, str], atomic()] = field(default_factory=dict)
    template: Annotated[dict[str, Any], embedded_resource()] | None = None


@dataclass
class FleetStatus:
    replicas: int = 0
    selector: str = ""


@dataclass
class OldFleetSpec:
    region: str = "nowhere"
    replicas: int = 1


@custom_resource(
    group=GROUP,
    version="v1beta1",
    kind="Fleet",
    deprecated="scaling.konverge.test/v1beta1 Fleet is replaced by v1",
    print_columns=(PrintColumn("Where", "string", ".spec.region"),),
)
@dataclass
class FleetV1Beta1:
    metadata: Metadata
    spec: OldFleetSpec = field(default_factory=OldFleetSpec)


@custom_resource(
    group=GROUP,
    version="v1",
    short_names=("fl",),
    categories=("konverge",),
    print_columns=(
        PrintColumn("Region", "string", ".spec.region", "Where it is."),
        PrintColumn("Tier", "string", ".spec.tier", priority=1),
        PrintColumn("Wanted", "integer", ".spec.replicas"),
    ),
    rules=(CelRule("self.metadata.name != 'armada'", "no fleet is called so"),),
    scale=Scale(label_selector=".status.selector"),
    selectable_fields=(".spec.tier",),
    also_serves=(FleetV1Beta1,),
)
@dataclass
class Fleet:
    """Many of a kind."""

    metadata: Metadata
    spec: FleetSpec
    status: FleetStatus | None = None
