"""The same resource as `tests.crd.webapps.WebApp`, and one of mixed classes, as pydantic models."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import attrs
import msgspec
from annotated_types import Len
from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, StringConstraints, field_validator, model_validator

from konverge.crd import CelRule, Metadata, custom_resource, immutable, list_map, rules
from tests.crd.webapps import Port, Tier


class ResourcesModel(BaseModel):
    """What one replica gets."""

    cpu_limit: str = "500m"
    extra_limits: dict[str, str] = Field(default_factory=dict)


class WebAppModelSpec(BaseModel):
    image: str = Field(min_length=1, description="The container image.")
    replicas: int = Field(default=1, ge=0, le=50)
    tracing_enabled: bool = False
    tier: Tier = Tier.FREE
    strategy: Literal["Recreate", "RollingUpdate"] | None = None
    max_unavailable: int | str = 1
    ratio: float | None = Field(default=None, gt=0.0)
    ports: Annotated[list[Port], list_map("name")] = Field(default_factory=list)
    zones: set[str] = Field(default_factory=lambda: {"b", "a"})
    resources: ResourcesModel = Field(default_factory=ResourcesModel)
    grace_period: timedelta = timedelta(minutes=5)
    not_before: datetime | None = None
    values: dict[str, Any] = Field(default_factory=dict)


@custom_resource(group="models.konverge.test", version="v1alpha1", kind="WebApp", short_names=("wa",))
class WebAppModel(BaseModel):
    """A web application."""

    metadata: Metadata
    spec: Annotated[
        WebAppModelSpec, rules(CelRule("self.replicas < 40 || self.tier == 'paid'", "40 replicas are paid for"))
    ]


class Window(BaseModel):
    """From one hour to another."""

    model_config = ConfigDict(alias_generator=lambda name: f"{name}Hour", extra="allow")

    first: int = Field(default=0, ge=0, lt=24)
    last: Annotated[int, Field(ge=0, lt=24)] = 23

    @field_validator("first")
    @classmethod
    def _is_even(cls, hour: int) -> int:
        if hour % 2:
            raise ValueError(f"expected an even hour, found {hour}")
        return hour

    @model_validator(mode="after")
    def _is_in_order(self) -> Window:
        if self.first > self.last:
            raise ValueError("the first hour is after the last")
        return self


@attrs.define
class Store:
    size: int = attrs.field(default=1, validator=attrs.validators.lt(10))
    windows: dict[str, Window] = attrs.field(factory=dict)


class Limits(msgspec.Struct):
    window: Window | None = None


@dataclass
class Steps:
    windows: list[Window] = field(default_factory=list)
    most: int = 3

    def __post_init__(self) -> None:
        if len(self.windows) > self.most:
            raise ValueError(f"expected {self.most} windows at most, found {len(self.windows)}")


class MixedSpec(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    title: Annotated[str, StringConstraints(min_length=2, pattern="^[a-z]+$")] = "none"
    weights: list[PositiveInt] = Field(default_factory=list, max_length=3)
    pairs: Annotated[list[int], Len(0, 2)] = Field(default_factory=list)
    share: int | float = 1
    either: Annotated[int, Field(le=7)] | str | None = None
    store: Store = Field(default_factory=Store)
    limits: Limits = Field(default_factory=Limits)
    steps: Steps = Field(default_factory=Steps)
    window: Annotated[Window, immutable()] = Field(default_factory=Window)
    noted: Annotated[int, Meta(ge=1)] = 1


@custom_resource(group="models.konverge.test", version="v1", print_columns=())
@dataclass
class Mixed:
    metadata: Metadata
    spec: MixedSpec = field(default_factory=MixedSpec)
