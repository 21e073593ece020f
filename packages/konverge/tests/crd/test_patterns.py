"""Patterns are the schema's: the API server matches them, Python's backtracking ``re`` never does."""

from dataclasses import dataclass, field
from typing import Annotated, Any, NewType

import attrs
import pytest
from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from konverge.crd import Metadata, crd_manifest, custom_resource, decode
from konverge.errors import DecodeError

# RE2 needs as long for it as for any other; Python's re would be busy for years.
SLOW = r"^([a-z0-9]+-?)+$"
ENDLESS = "a" * 60 + "!"

Host = Annotated[str, Meta(pattern=SLOW, max_length=63)]
NamedHost = NewType("NamedHost", Host)


@dataclass(frozen=True, slots=True)
class Site:
    host: Host
    aliases: list[Host] = field(default_factory=list)
    ports: dict[Host, int] = field(default_factory=dict)
    named: NamedHost | None = None

    def __post_init__(self) -> None:
        if self.host == "forbidden":
            raise ValueError("expected a host that is not forbidden")


@attrs.frozen
class Mirror:
    host: Host = attrs.field(default="a", validator=attrs.validators.not_(attrs.validators.in_(["forbidden"])))


class Cache(Struct, frozen=True, rename="camel"):
    size: int
    host_name: Host = "a"

    def __post_init__(self) -> None:
        if self.host_name == "forbidden":
            raise ValueError("expected a host that is not forbidden")


class Door(BaseModel):
    host: str = Field(default="a", pattern=SLOW)
    site: Site | None = None


@dataclass
class TownSpec:
    host: Host = "a"
    site: Site | None = None
    mirrors: list[Mirror] = field(default_factory=list)
    caches: dict[str, Cache] = field(default_factory=dict)
    door: Door | None = None


@custom_resource(group="patterns.konverge.test", version="v1", print_columns=())
@dataclass
class Town:
    metadata: Metadata
    spec: TownSpec = field(default_factory=TownSpec)


def town(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "t"}, "spec": spec}


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "spec",
    [
        {"host": ENDLESS},
        {"site": {"host": ENDLESS, "aliases": [ENDLESS], "ports": {ENDLESS: 1}, "named": ENDLESS}},
        {"mirrors": [{"host": ENDLESS}]},
        {"caches": {"big": {"size": 1, "hostName": ENDLESS}}},
        {"door": {"site": {"host": ENDLESS}}},
    ],
)
def test_a_text_that_a_pattern_would_be_busy_with_for_years_is_read_at_once(spec: dict[str, Any]) -> None:
    decode(Town, town(**spec))


@pytest.mark.timeout(10)
def test_a_models_pattern_is_matched_by_pydantic_in_linear_time() -> None:
    with pytest.raises(DecodeError, match="should match pattern"):
        decode(Town, town(door={"host": ENDLESS}))


def test_what_is_read_past_a_pattern_is_an_instance_of_its_class() -> None:
    spec = decode(
        Town,
        town(
            host="b",
            site={"host": "b", "named": "c"},
            mirrors=[{"host": "b"}],
            caches={"big": {"size": 1, "hostName": "b"}},
            door={"site": {"host": "b"}},
        ),
    ).spec

    assert type(spec) is TownSpec
    assert spec == TownSpec(
        "b",
        Site("b", named=NamedHost("c")),
        [Mirror("b")],
        {"big": Cache(1, "b")},
        Door(site=Site("b")),
    )
    found = [spec.site, spec.mirrors[0], spec.caches["big"], spec.door and spec.door.site]
    assert [type(each) for each in found] == [Site, Mirror, Cache, Site]


@pytest.mark.parametrize(
    ("spec", "path", "problem"),
    [
        ({"host": "a" * 64}, "spec.host", "expected str of length <= 63"),
        ({"site": {"host": 5}}, "spec.site.host", "expected str, found int"),
        ({"site": {}}, "spec.site.host", "required"),
        ({"site": {"host": "forbidden"}}, "spec.site", "not forbidden"),
        ({"mirrors": [{"host": "forbidden"}]}, "spec.mirrors[0]", "did not raise"),
        ({"caches": {"big": {"size": 1, "hostName": "forbidden"}}}, "spec.caches[...]", "not forbidden"),
        ({"caches": {"big": {"hostName": "b"}}}, "spec.caches[...].size", "required"),
    ],
)
def test_every_other_rule_is_checked(spec: dict[str, Any], path: str, problem: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode(Town, town(**spec))

    assert (refused.value.path, problem in str(refused.value)) == (path, True), str(refused.value)


def test_the_schema_has_the_patterns() -> None:
    schema = crd_manifest(Town)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]

    assert schema["host"]["pattern"] == SLOW
    assert schema["door"]["properties"]["host"]["pattern"] == SLOW
    assert schema["site"]["properties"]["aliases"]["items"]["pattern"] == SLOW
