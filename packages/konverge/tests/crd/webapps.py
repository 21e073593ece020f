"""The custom resources that the tests of this package declare."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import attrs
import msgspec
from msgspec import Meta

from konverge.crd import CelRule, Metadata, custom_resource, list_map, rules


class Tier(StrEnum):
    FREE = "free"
    PAID = "paid"


@dataclass
class Port:
    name: str
    port: Annotated[int, Meta(ge=1, le=65535)]
    app_protocol: str | None = None


@dataclass
class Resources:
    """What one replica gets."""

    cpu_limit: str = "500m"
    extra_limits: dict[str, str] = field(default_factory=dict)


@dataclass
class WebAppSpec:
    image: Annotated[str, Meta(min_length=1, description="The container image.")]
    replicas: Annotated[int, Meta(ge=0, le=50)] = 1
    tracing_enabled: bool = False
    tier: Tier = Tier.FREE
    strategy: Literal["Recreate", "RollingUpdate"] | None = None
    max_unavailable: int | str = 1
    ratio: Annotated[float, Meta(gt=0.0)] | None = None
    ports: Annotated[list[Port], list_map("name")] = field(default_factory=list)
    zones: set[str] = field(default_factory=lambda: {"b", "a"})
    resources: Resources = field(default_factory=Resources)
    grace_period: timedelta = timedelta(minutes=5)
    not_before: datetime | None = None
    values: dict[str, Any] = field(default_factory=dict)


@custom_resource(group="crd.konverge.test", version="v1alpha1", short_names=("wa",), categories=("all",))
@dataclass
class WebApp:
    """A web application."""

    metadata: Metadata
    spec: Annotated[WebAppSpec, rules(CelRule("self.replicas < 40 || self.tier == 'paid'", "40 replicas are paid for"))]


@attrs.define
class QueueSpec:
    max_length: int = 100
    labels: dict[str, str] = attrs.field(factory=dict)


@attrs.define
class QueueStatus:
    current_length: int | None = None


@custom_resource(group="crd.konverge.test", version="v1", scope="Cluster", print_columns=())
@attrs.define
class Queue:
    metadata: Metadata
    spec: QueueSpec = attrs.field(factory=QueueSpec)
    status: QueueStatus | None = None


class PolicySpec(msgspec.Struct, rename={"allow_all": "allowEverything"}):
    allow_all: bool = False
    peer_names: list[str] = []


@custom_resource(group="crd.konverge.test", version="v1beta2", kind="AccessPolicy")
class Policy(msgspec.Struct):
    metadata: Metadata
    spec: PolicySpec
