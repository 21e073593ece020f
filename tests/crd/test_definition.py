from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from konverge.crd import Metadata, custom_resource, definition_of
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, ObjectKey
from tests.crd.webapps import Policy, Queue, WebApp, WebAppSpec


def mistakes_of(declare: Any) -> tuple[str, ...]:
    with pytest.raises(BuildError) as failure:
        declare()
    return failure.value.mistakes


def test_kind_and_plural_come_from_the_class() -> None:
    definition = definition_of(WebApp)

    assert definition.gvk == GroupVersionKind("crd.konverge.test", "v1alpha1", "WebApp")
    assert definition.name == "webapps.crd.konverge.test"
    assert definition.mapping.path(ObjectKey("default", "web")) == (
        "/apis/crd.konverge.test/v1alpha1/namespaces/default/webapps/web"
    )


def test_a_kind_of_its_own_gets_its_own_plural() -> None:
    assert definition_of(Policy).gvk.kind == "AccessPolicy"
    assert definition_of(Policy).plural == "accesspolicies"


def test_cluster_scope_has_no_namespace_in_its_path() -> None:
    assert definition_of(Queue).mapping.path(ObjectKey("", "q")) == "/apis/crd.konverge.test/v1/queues/q"


def test_a_class_without_declaration_is_refused() -> None:
    class Derived(WebApp):
        pass

    assert mistakes_of(lambda: definition_of(Derived)) == ("the class has no @custom_resource(...)",)


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


class Odd(msgspec.Struct):
    node: Node
    pair: tuple[int, str]
    either: int | bool
    by_number: dict[int, str]
    mixed: "dict[str, list[object]]"


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
    )
