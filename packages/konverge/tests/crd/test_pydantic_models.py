"""pydantic models are declared, served and read like every other class."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import BaseModel, Field, RootModel
from pydantic.dataclasses import dataclass as pydantic_dataclass

from konverge.crd import Metadata, crd_manifest, custom_resource, decode, encode
from konverge.errors import BuildError, DecodeError
from tests.crd.models import Mixed, MixedSpec, Steps, Store, WebAppModel, WebAppModelSpec, Window
from tests.crd.webapps import Port, Tier, WebApp, WebAppSpec


def spec_schema(cls: type) -> Any:
    return crd_manifest(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def build_mixed(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m"}, "spec": spec}


def test_a_model_has_the_schema_of_the_dataclass_with_its_fields() -> None:
    assert spec_schema(WebAppModel) == spec_schema(WebApp)


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": "3"},
        {"replicas": 51},
        {"image": None},
        {"image": ""},
        {"tracingEnabled": 1},
        {"ports": [{"name": "http", "port": 80}, {"name": "x"}]},
        {"ports": [{"name": "http", "port": 0}]},
        {"resources": "big"},
        {"resources": {"cpuLimit": 3}},
        {"resources": {"extraLimits": {"a": 1}}},
        {"tier": "gold"},
        {"strategy": "Guess"},
        {"ratio": -1},
        {"gracePeriod": "soon"},
        {"gracePeriod": 5},
        {"notBefore": "tomorrow"},
    ],
)
def test_a_field_of_a_model_is_refused_in_the_words_for_every_class(spec: dict[str, Any]) -> None:
    obj = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"image": "app:1", **spec}}

    with pytest.raises(DecodeError) as of_dataclass:
        decode(WebApp, obj)
    with pytest.raises(DecodeError) as of_model:
        decode(WebAppModel, obj)

    assert str(of_model.value) == str(of_dataclass.value)


def test_a_model_is_read_and_written_as_the_dataclass_with_its_fields() -> None:
    rich: dict[str, Any] = {
        "image": "app:1",
        "tier": "paid",
        "gracePeriod": "1h30m",
        "zones": ["x", "y"],
        "notBefore": "2026-01-01T00:00:00Z",
        "ports": [{"name": "http", "port": 80, "appProtocol": "h2c"}],
        "maxUnavailable": "50%",
        "ratio": None,
        "replicas": None,
    }
    obj = {"metadata": {"name": "web"}, "spec": rich}

    app = decode(WebAppModel, obj)

    assert app.spec == WebAppModelSpec(
        image="app:1",
        tier=Tier.PAID,
        grace_period=timedelta(hours=1, minutes=30),
        zones={"x", "y"},
        not_before=datetime(2026, 1, 1, tzinfo=UTC),
        ports=[Port("http", 80, "h2c")],
        max_unavailable="50%",
    )
    assert app.metadata == Metadata(name="web")
    assert encode(app)["spec"] == encode(decode(WebApp, obj))["spec"]


def test_absent_fields_are_not_set_and_take_their_defaults() -> None:
    spec = decode(WebAppModel, {"metadata": {"name": "web"}, "spec": {"image": "app:1"}}).spec

    assert spec.model_fields_set == {"image"}
    assert (
        encode(WebAppModel(metadata=Metadata(name="w"), spec=spec))["spec"]
        == (encode(WebApp(Metadata(name="w"), WebAppSpec(image="app:1")))["spec"])
    )


def test_every_constraint_stands_in_the_schema() -> None:
    schema = spec_schema(Mixed)["properties"]

    assert schema["title"] == {"type": "string", "minLength": 2, "pattern": "^[a-z]+$", "default": "none"}
    assert schema["weights"] == {
        "type": "array",
        "items": {"type": "integer", "format": "int64", "minimum": 0, "exclusiveMinimum": True},
        "maxItems": 3,
        "default": [],
    }
    assert schema["pairs"]["maxItems"] == 2
    assert schema["share"] == {"type": "number", "format": "double", "default": 1}
    assert schema["either"] == {"x-kubernetes-int-or-string": True, "nullable": True}
    assert schema["noted"]["minimum"] == 1
    assert schema["window"]["properties"]["firstHour"] == {
        "type": "integer",
        "format": "int64",
        "minimum": 0,
        "maximum": 24,
        "exclusiveMaximum": True,
        "default": 0,
    }
    assert schema["window"]["x-kubernetes-preserve-unknown-fields"] is True
    assert schema["window"]["x-kubernetes-validations"] == [{"rule": "self == oldSelf", "message": "is immutable"}]
    assert schema["store"]["properties"]["windows"]["additionalProperties"]["description"] == (
        "From one hour to another."
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"window": {"firstHour": 3}}, "spec.window.firstHour: expected an even hour, found 3"),
        ({"window": {"firstHour": 4, "lastHour": 2}}, "spec.window: the first hour is after the last"),
        ({"window": {"firstHour": 24}}, "spec.window.firstHour: expected int <= 23"),
        (
            {"steps": {"windows": [{}, {"firstHour": 1}]}},
            "spec.steps.windows[1].firstHour: expected an even hour, found 1",
        ),
        ({"steps": {"windows": [{}, {}], "most": 1}}, "spec.steps: expected 1 windows at most, found 2"),
        (
            {"store": {"windows": {"night": {"firstHour": "x"}}}},
            "spec.store.windows[...].firstHour: expected int, found str",
        ),
        ({"store": {"size": 11}}, "spec.store: 'size' must be < 10: 11"),
        ({"limits": {"window": {"lastHour": -2}}}, "spec.limits.window.lastHour: expected int >= 0"),
        ({"title": "A"}, "spec.title: expected str of length >= 2"),
        ({"weights": [1, 0]}, "spec.weights[1]: expected int >= 1"),
        ({"noted": 0}, "spec.noted: expected int >= 1"),
    ],
)
def test_validators_run_at_any_depth_and_name_the_field(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecodeError) as failure:
        decode(Mixed, build_mixed(**spec))

    assert failure.value.problem == problem


def test_models_and_other_classes_hold_each_other() -> None:
    spec = {
        "title": "abc",
        "share": 0.5,
        "either": "x",
        "store": {"size": 2, "windows": {"night": {"firstHour": 2, "lastHour": 4}}},
        "limits": {"window": {"firstHour": 0, "lastHour": 1}},
        "steps": {"windows": [{"firstHour": 2, "lastHour": 3}], "most": 3},
        "window": {"firstHour": 0, "lastHour": 23},
        "weights": [1],
        "pairs": [],
        "noted": 1,
    }

    found = decode(Mixed, build_mixed(**spec))

    assert found.spec.store == Store(2, {"night": Window.model_validate({"firstHour": 2, "lastHour": 4})})
    assert found.spec.steps == Steps([Window.model_validate({"firstHour": 2, "lastHour": 3})])
    assert encode(found)["spec"] == spec


def test_a_model_that_allows_more_keeps_it() -> None:
    obj = build_mixed(window={"firstHour": 2, "lastHour": 3, "first": 7, "toBeNamed": {"deep": [1]}})

    window = decode(Mixed, obj).spec.window

    assert window.model_extra == {"toBeNamed": {"deep": [1]}}
    assert encode(decode(Mixed, obj))["spec"]["window"]["toBeNamed"] == {"deep": [1]}


def test_the_default_of_a_model_is_the_servers() -> None:
    assert spec_schema(Mixed)["default"] == encode(Mixed(Metadata(name="m"), MixedSpec()))["spec"]


@pydantic_dataclass
class Slot:
    hour: int = 1


class Bits(RootModel[list[int]]):
    pass


class Odd(BaseModel):
    slot: Slot
    bits: Bits
    price: Decimal
    span: timedelta = Field(timedelta(1), gt=timedelta(0))
    two_names: int = Field(1, validation_alias="one", serialization_alias="two")
    choice: int | bool = 1
    made: int = Field(default_factory=lambda data: 2 * len(data))


def test_what_a_schema_has_no_word_for_is_named_with_its_path() -> None:
    class Strange(BaseModel):
        metadata: Metadata
        spec: Odd

    with pytest.raises(BuildError) as failure:
        custom_resource(group="a.b", version="v1")(Strange)

    assert failure.value.errors == (
        "spec.span: its type or a constraint of it has no counterpart in a schema: `gt` must be an int or float, "
        "got datetime.timedelta",
        "spec.twoNames: expected one alias for reading and writing (alias=...), found two",
        "spec.made: its default is made of other fields, which a schema has no word for",
        "spec.slot: Slot is a pydantic dataclass; use a pydantic BaseModel, or a plain dataclass",
        "spec.bits: a RootModel is not an object: use the type that it wraps",
        "spec.price: Decimal has no counterpart in a Kubernetes schema; use str with a pattern, since its numbers are "
        "binary",
        "spec.choice: a union may be of one type and None, of int and str, or of int and float; "
        "give each alternative an optional field of its own",
    )


@dataclass
class Misled:
    size: Annotated[int, Field(ge=1)] = 1
    count: int = Field(default=2)


def test_constraints_of_pydantic_are_not_lost_in_silence_elsewhere() -> None:
    @dataclass
    class Thing:
        metadata: Metadata
        spec: Misled

    with pytest.raises(BuildError) as failure:
        custom_resource(group="a.b", version="v1")(Thing)

    assert failure.value.errors == (
        "spec.size: FieldInfo of pydantic counts in pydantic models only; use msgspec.Meta",
        "spec.count: its default has no form in JSON: expected a JSON value or a dataclass, attrs class, "
        "msgspec Struct or pydantic model, found FieldInfo",
    )


@pytest.mark.slow
def test_pydantic_is_not_loaded_for_other_classes() -> None:
    program = (
        "import sys, tests.crd.webapps as w, konverge.crd as c; "
        "c.crd_manifest(w.WebApp); print('pydantic' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
    assert pydantic.VERSION
