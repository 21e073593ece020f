from dataclasses import dataclass, field, make_dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from msgspec import Meta

from konverge.crd import Metadata, custom_resource, find_definition, list_map, unstructured_resource
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, ObjectKey
from tests.crd.webapps import Policy, Port, Queue, WebApp, WebAppSpec


def mistakes_of(declare: Any) -> tuple[str, ...]:
    with pytest.raises(BuildError) as failure:
        declare()
    return failure.value.errors


def test_kind_and_plural_come_from_the_class() -> None:
    definition = find_definition(WebApp)

    assert definition.gvk == GroupVersionKind("crd.konverge.test", "v1alpha1", "WebApp")
    assert definition.name == "webapps.crd.konverge.test"
    assert definition.mapping.build_path(ObjectKey("default", "web")) == (
        "/apis/crd.konverge.test/v1alpha1/namespaces/default/webapps/web"
    )


def test_a_kind_of_its_own_gets_its_own_plural() -> None:
    assert find_definition(Policy).gvk.kind == "AccessPolicy"
    assert find_definition(Policy).plural == "accesspolicies"


def test_cluster_scope_has_no_namespace_in_its_path() -> None:
    assert find_definition(Queue).mapping.build_path(ObjectKey("", "q")) == "/apis/crd.konverge.test/v1/queues/q"


def test_a_class_without_declaration_is_refused() -> None:
    class Derived(WebApp):
        pass

    assert mistakes_of(lambda: find_definition(Derived)) == ("the class has no @custom_resource(...)",)


def test_every_mistake_of_the_names_is_reported_at_once() -> None:
    declare = custom_resource(group="nodot", version="V1", kind="webApp", plural="Web", short_names=("W",))

    mistakes = mistakes_of(lambda: declare(WebApp))

    assert [mistake.partition(":")[0] for mistake in mistakes] == ["group", "version", "kind", "plural", "short name"]


def test_a_class_without_metadata_and_spec_is_told_what_to_declare() -> None:
    @dataclass
    class Bare:
        size: int

    assert mistakes_of(lambda: custom_resource(group="a.b", version="v1")(Bare)) == (
        "size: a custom resource has metadata, spec and status only",
        "metadata: expected a field `metadata: Metadata`",
        "spec: expected a field `spec` of a dataclass, attrs class, msgspec Struct or pydantic model",
    )


def test_the_wrong_order_of_decorators_is_explained() -> None:
    class Plain:
        metadata: Metadata
        spec: WebAppSpec

    (mistake,) = mistakes_of(lambda: custom_resource(group="a.b", version="v1")(Plain))

    assert "above @dataclass" in mistake


class Node(msgspec.Struct):
    children: "list[Node]" = []


class Page(msgspec.Struct, frozen=True):
    number: int


class Odd(msgspec.Struct):
    node: Node
    pair: tuple[int, str]
    either: int | bool
    by_number: dict[int, str]
    mixed: "dict[str, list[object]]"
    pages: frozenset[Page] = frozenset()


def test_types_without_a_schema_are_named_with_their_path() -> None:
    class Strange(msgspec.Struct):
        metadata: Metadata
        spec: Odd

    mistakes = mistakes_of(lambda: custom_resource(group="a.b", version="v1")(Strange))

    assert mistakes == (
        "spec.node.children[]: Node contains itself, and a Kubernetes schema cannot refer back; "
        "use dict[str, Any] for the inner one",
        "spec.pair: Tuple has no counterpart in a Kubernetes schema; use a class with a field for each item, or a list",
        "spec.either: a union may be of one type and None, of int and str, or of int and float; "
        "give each alternative an optional field of its own",
        "spec.byNumber: the keys of a mapping are strings",
        "spec.mixed{}[]: object has no counterpart in a Kubernetes schema",
        "spec.pages: the items of a set are strings, numbers or booleans; use a list, with list_map for its keys",
    )


@dataclass
class Size:
    replicas: Annotated[int, Meta(ge=1)] = 0


@pytest.mark.parametrize(
    ("hint", "default", "mistake"),
    [
        (Annotated[int, Meta(ge=1)], 0, "its default: expected at least 1, found 0"),
        (Annotated[float, Meta(gt=0)], 0, "its default: expected more than 0, found 0"),
        (Annotated[int, Meta(lt=5)], 5, "its default: expected less than 5, found 5"),
        (Annotated[float, Meta(multiple_of=0.01)], 0.29, "its default: expected a multiple of 0.01, found 0.29"),
        (Annotated[int, Meta(multiple_of=4)], 6, "its default: expected a multiple of 4, found 6"),
        (int, "3", 'its default: expected integer, found "3"'),
        (int, True, "its default: expected integer, found true"),
        (int | str, 1.5, "its default: expected integer or string, found 1.5"),
        (Literal["a", "b"], "c", 'its default: expected one of "a", "b", found "c"'),
        (
            Annotated[str, Meta(pattern="^[a-z]+$")],
            "A",
            "its default: expected text that matches '^[a-z]+$', found \"A\"",
        ),
        (Annotated[str, Meta(max_length=1)], "ab", "its default: expected a length of at most 1, found 2"),
        (datetime | None, "tomorrow", 'its default: expected the format date-time, found "tomorrow"'),
        (timedelta, "PT5M", "its default: expected text that matches"),
        (Annotated[tuple[str, ...], Meta(min_length=1)], (), "its default: expected a length of at least 1, found 0"),
        (
            Annotated[tuple[Port, ...], list_map("name")],
            (Port("a", 1), Port("a", 2)),
            'its default: expected {"name": "a"} once, found it twice',
        ),
        (tuple[Port, ...], (Port("a", 0),), "at [0].port of its default: expected at least 1, found 0"),
    ],
)
def test_a_default_keeps_the_constraints_of_its_field(hint: Any, default: Any, mistake: str) -> None:
    spec = make_dataclass("Spec", [("size", hint, default)])
    resource = make_dataclass("Resource", [("metadata", Metadata), ("spec", spec)])

    (found,) = mistakes_of(lambda: custom_resource(group="a.b", version="v1")(resource))

    assert found.startswith(f"spec.size: {mistake}")


@pytest.mark.parametrize(("low", "high"), [(7101, 7102), (7201.0, 7202.0)])
def test_the_limits_of_a_number_do_not_depend_on_their_python_type(low: float, high: float) -> None:
    # Meta(gt=0) and Meta(gt=0.0) are equal, so `typing` returns for both hints the one that any module of the process
    # used first. Neither a manifest nor a message may show the difference. No other test uses these numbers.
    spec = make_dataclass(
        "Spec",
        [
            ("between", Annotated[float, Meta(gt=low, lt=high)] | None, None),
            ("within", Annotated[float, Meta(ge=low, le=high, multiple_of=low)] | None, None),
            ("share", Annotated[float, Meta(ge=low + 0.5)] | None, None),
        ],
    )
    resource = make_dataclass("Resource", [("metadata", Metadata), ("spec", spec)])

    definition = find_definition(custom_resource(group="a.b", version="v1")(resource))

    fields = definition.schema["properties"]["spec"]["properties"]
    names = ("minimum", "maximum", "multipleOf")
    limits = {name: [repr(field[key]) for key in names if key in field] for name, field in fields.items()}
    first, last = str(int(low)), str(int(high))
    assert limits == {"between": [first, last], "within": [first, last, first], "share": [repr(low + 0.5)]}
    # 1 == True in Python, and the server accepts only a boolean.
    assert (fields["between"]["exclusiveMinimum"] is True, fields["between"]["exclusiveMaximum"] is True) == (
        True,
        True,
    )


def test_a_broken_default_of_an_inner_class_is_told_once() -> None:
    @dataclass
    class Resource:
        metadata: Metadata
        spec: Size = field(default_factory=Size)

    assert mistakes_of(lambda: custom_resource(group="a.b", version="v1")(Resource)) == (
        "spec.replicas: its default: expected at least 1, found 0",
    )


def test_a_default_of_an_inner_class_keeps_the_constraints_of_the_fields() -> None:
    @dataclass
    class Resource:
        metadata: Metadata
        spec: WebAppSpec = field(default_factory=lambda: WebAppSpec(image=""))

    assert mistakes_of(lambda: custom_resource(group="a.b", version="v1")(Resource)) == (
        "spec: at image of its default: expected a length of at least 1, found 0",
    )


def test_a_default_of_a_pydantic_model_keeps_the_constraints_of_its_field() -> None:
    class Spec(pydantic.BaseModel):
        replicas: Annotated[int, pydantic.Field(ge=1)] = 0

    class Resource(pydantic.BaseModel):
        metadata: Metadata
        spec: Spec

    assert mistakes_of(lambda: custom_resource(group="a.b", version="v1")(Resource)) == (
        "spec.replicas: its default: expected at least 1, found 0",
    )


def test_a_default_of_a_plain_schema_keeps_its_constraints() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1, "default": 0}}}

    assert mistakes_of(lambda: unstructured_resource(GroupVersionKind("a.b", "v1", "Thing"), {"spec": schema})) == (
        "spec.size: its default: expected at least 1, found 0",
    )
