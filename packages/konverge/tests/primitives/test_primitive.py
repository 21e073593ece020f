"""What holds for every kind, tested on every kind."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from konverge.errors import BuildError, KonvergeError
from konverge.feature import BooleanGate
from konverge.guards import UNBLOCKED, blocked
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.mutation import Mutation, Mutator
from konverge.primitives import (
    ConfigMap,
    Convergence,
    ConvergingStatus,
    Data,
    Deployment,
    DeploymentMutator,
    GuardResult,
    Operation,
    Primitive,
    Resource,
    Service,
    StatefulSet,
    Static,
)
from tests.primitives.objects import build_named, build_primitives, build_widget, kind_of, list_classes


def label(key: str, value: str, *, on: bool = True) -> Mutation[Mutator]:
    """A mutation that every kind takes."""
    return Mutation(
        key, lambda m: m.edit_object_metadata(lambda metadata: metadata.ensure_label(key, value)), BooleanGate(on)
    )


def resource(primitive: Resource) -> Resource:
    """Checked by the type checker: every primitive is a resource of the engine."""
    return primitive


def test_every_namespaced_primitive_is_among_those_of_the_tests() -> None:
    namespaced = {name for name, found in list_classes().items() if not found.is_cluster_scoped}

    assert {kind_of(primitive) for primitive in build_primitives()} == namespaced - {
        "RoleBinding"
    }  # it needs a role besides


@pytest.mark.parametrize("primitive", build_primitives(), ids=kind_of)
def test_every_primitive_is_what_the_engine_asks_for(primitive: Primitive[Any]) -> None:
    known = resource(primitive)
    assert known.errors == ()
    assert known.key == ObjectKey("default", "web")
    assert known.render()["kind"] == known.gvk.kind
    assert known.check_guard() == UNBLOCKED


@pytest.mark.parametrize(
    ("primitive", "identity"),
    [
        (Deployment(build_named("frontend")), "apps/v1/Deployment/default/frontend"),
        (ConfigMap(build_named("settings")), "v1/ConfigMap/default/settings"),
        (Static(build_widget()), "demo.konverge.dev/v1/Widget/default/web"),
        (
            Static(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "metadata": {"name": "viewer"},
                },
                cluster_scoped=True,
            ),
            "rbac.authorization.k8s.io/v1/ClusterRole/viewer",
        ),
    ],
)
def test_identity(primitive: Primitive[Any], identity: str) -> None:
    assert primitive.identity == identity
    assert identity in repr(primitive)


@pytest.mark.parametrize("primitive", build_primitives(mutations=label("team", "blue")), ids=kind_of)
def test_desired_objects_are_private_copies(primitive: Primitive[Any]) -> None:
    first = primitive.render()
    expected = copy.deepcopy(first)
    first["metadata"]["labels"]["team"] = "red"
    first["metadata"]["name"] = "other"
    assert primitive.render() == expected


def test_the_baseline_is_copied_when_the_primitive_is_made() -> None:
    given = build_named(data={"mode": "fast"})
    config = ConfigMap(given)
    given["data"]["mode"] = "slow"
    assert config.render()["data"] == {"mode": "fast"}


def test_a_missing_kind_is_filled_in() -> None:
    assert Deployment(build_named()).render() == {"apiVersion": "apps/v1", "kind": "Deployment", **build_named()}


def test_a_kind_that_is_null_is_filled_in() -> None:
    given = {"apiVersion": None, "kind": None, **build_named()}
    assert Deployment(given).render() == {"apiVersion": "apps/v1", "kind": "Deployment", **build_named()}


def test_anything_with_to_dict_is_accepted() -> None:
    class Model:
        def to_dict(self) -> Object:
            return build_named(data={"mode": "fast"})

    assert ConfigMap(Model()).render()["data"] == {"mode": "fast"}


def test_mutations_whose_gate_is_on_apply_in_order() -> None:
    mutations = [label("first", "yes"), label("never", "yes", on=False), label("second", "yes")]
    deployment = Deployment(build_named(), mutations=mutations)
    assert deployment.render()["metadata"]["labels"] == {"first": "yes", "second": "yes"}
    assert deployment.registered_mutations() == ("first", "never", "second")
    assert deployment.firing_set() == ("first", "second")


def test_a_mutation_runs_on_every_pass_and_sees_what_was_extracted_since() -> None:
    cell: list[str] = []
    endpoint = Mutation[Mutator](
        "endpoint", lambda m: m.edit_object_metadata(lambda metadata: metadata.ensure_label("endpoint", "".join(cell)))
    )
    config = ConfigMap(build_named(), mutations=endpoint)

    before = config.render()
    cell.append("db")

    assert before["metadata"]["labels"] == {"endpoint": ""}
    assert config.render()["metadata"]["labels"] == {"endpoint": "db"}


def test_a_mutation_for_another_kind_is_refused_by_the_type_checker_and_named_by_the_error() -> None:
    pause = Mutation[DeploymentMutator]("pause", lambda m: m.edit_deployment_spec(lambda spec: spec.set(paused=True)))
    stateful_set = StatefulSet(build_named(), mutations=pause)  # type: ignore[arg-type]
    with pytest.raises(KonvergeError, match="intent for pause: AttributeError: .*StatefulSetMutator.*edit_deployment"):
        stateful_set.render()


def test_suspension_is_the_last_edit_and_does_not_last() -> None:
    def scale(m: Any) -> None:
        m.ensure_replicas(5)

    deployment = Deployment(build_named(), mutations=Mutation("scale", scale))
    assert deployment.render(suspended=True)["spec"]["replicas"] == 0
    assert deployment.render()["spec"]["replicas"] == 5


def test_the_guard_gets_a_copy_of_the_baseline() -> None:
    seen: list[Object] = []

    def guard(obj: Object) -> GuardResult:
        seen.append(obj)
        obj["metadata"]["name"] = "changed"
        return blocked("waiting")

    config = ConfigMap(build_named(), mutations=label("team", "blue"), guard=guard)

    assert config.check_guard() == blocked("waiting")
    assert "labels" not in seen[0]["metadata"]
    assert config.render()["metadata"]["name"] == "web"


def test_each_extractor_gets_its_own_copy_of_the_live_object() -> None:
    seen: list[Object] = []

    def greedy(live: Object) -> None:
        seen.append(dict(live["data"]))
        live["data"].clear()

    live = build_named(data={"endpoint": "db:5432"})
    ConfigMap(build_named(), extract=[greedy, greedy]).extract(live)

    assert seen == [{"endpoint": "db:5432"}, {"endpoint": "db:5432"}]
    assert live["data"] == {"endpoint": "db:5432"}


def test_an_error_of_an_extractor_reaches_the_engine_as_it_is() -> None:
    def broken(live: Object) -> None:
        raise LookupError("no endpoint")

    with pytest.raises(LookupError, match="no endpoint"):
        ConfigMap(build_named(), extract=broken).extract(build_named())


def test_a_mutation_cannot_turn_the_object_into_another_one() -> None:
    def rename(m: Mutator) -> None:
        m.edit_object_metadata(lambda metadata: metadata.raw().update(name="other"))

    with pytest.raises(
        KonvergeError, match="default/web: expected the key default/web, found default/other after a mutation"
    ):
        ConfigMap(build_named(), mutations=Mutation("rename", rename)).render()


def test_handlers_can_be_replaced_and_can_ask_the_default() -> None:
    warming = Convergence(ConvergingStatus.SCALING, "warming up")

    def patient(live: Object, operation: Operation) -> Convergence:
        found = Deployment.default_converging_status(live, operation)
        return found if live.get("ready") else warming

    deployment = Deployment(build_named(), converging_status=patient, delete_on_suspend=True)

    assert deployment.converging_status({}, Operation.NONE) == warming
    assert deployment.converging_status({"ready": True}, Operation.NONE) == Deployment.default_converging_status(
        {}, Operation.NONE
    )
    assert deployment.deletes_on_suspend


def test_a_health_function_without_an_answer_takes_no_part_by_no_means() -> None:
    forgotten: Any = lambda *_: None  # noqa: E731
    deployment = Deployment(build_named(), converging_status=forgotten, grace_status=forgotten)

    with pytest.raises(KonvergeError, match="expected a Convergence, found None; is a return missing?"):
        deployment.converging_status({}, Operation.NONE)
    with pytest.raises(KonvergeError, match="expected a Grace, found None"):
        deployment.grace_status({})


@pytest.mark.parametrize(
    ("primitive", "is_suspendable", "deletes"),
    [
        (Deployment(build_named()), True, False),
        (StatefulSet(build_named()), True, False),
        (Service(build_named()), True, False),
        (Service(build_named(), delete_on_suspend=True), True, True),
        (ConfigMap(build_named()), False, False),
        (Static(build_widget()), False, False),
    ],
)
def test_what_suspension_means_to_a_kind(primitive: Primitive[Any], is_suspendable: bool, deletes: bool) -> None:
    assert (primitive.is_suspendable, primitive.deletes_on_suspend) == (is_suspendable, deletes)


def test_metrics_call_a_resource_by_its_kind_unless_it_has_a_name() -> None:
    assert Deployment(build_named()).metrics_identifier == "deployment"
    assert Deployment(build_named(), metrics_identifier="pages").metrics_identifier == "pages"


def test_a_primitive_knows_the_data_that_it_fills_and_reads() -> None:
    port, host, path = Data[int]("port"), Data[str]("host"), Data[str]("path")
    service = Service(
        build_named(),
        extract=[port.fill_with(lambda live: 80), lambda live: None, port.fill_with(lambda live: 81)],
        requires=[host, host],
        optional_data=path,
    )

    assert (service.produces, service.requires, service.optional_data) == ((port,), (host,), (path,))


# Mistakes: collected, so that a component's builder can report them all


async def waits(*_: object) -> Any:
    """A coroutine function where a plain one is expected."""


@pytest.mark.parametrize(
    ("primitive", "mistakes"),
    [
        pytest.param(Deployment(None), ("expected an object, found None",), id="no object"),  # type: ignore[arg-type]
        pytest.param(
            Deployment(3),  # type: ignore[arg-type]
            ("expected a mapping or an object with to_dict(), found int",),
            id="no mapping",
        ),
        pytest.param(
            Deployment({"apiVersion": "v1", "kind": "Service", **build_named()}),
            (
                "apiVersion: expected 'apps/v1', found 'v1'",
                "kind: expected 'Deployment', found 'Service'",
            ),
            id="another kind",
        ),
        pytest.param(
            Deployment({"apiVersion": "apps/v1beta1", "kind": "Deployment", **build_named()}),
            ("apiVersion: expected 'apps/v1', found 'apps/v1beta1'",),
            id="another version",
        ),
        pytest.param(
            Deployment({}),
            (
                "metadata.name: expected the object's name, found none",
                "metadata.namespace: expected a namespace for a Deployment, found none",
            ),
            id="neither name nor namespace",
        ),
        pytest.param(
            Static(build_widget(), cluster_scoped=True),
            ("metadata.namespace: expected none for a cluster-scoped Widget, found 'default'",),
            id="namespace of a cluster-scoped kind",
        ),
        pytest.param(
            Static(build_named()),
            ("apiVersion, kind: expected two non-empty strings, found none",),
            id="any kind, not said which",
        ),
        pytest.param(
            Deployment({"api_version": "apps/v1", "kind": "Deployment"}),
            (
                "field names: expected those of the API (apiVersion), found those of Python (api_version); with the "
                "kubernetes client, pass ApiClient().sanitize_for_serialization(obj)",
            ),
            id="the kubernetes client's to_dict()",
        ),
        pytest.param(
            ConfigMap(build_named(metadata_of=object())),
            ("expected a JSON object: found a value of type object",),
            id="no JSON",
        ),
        pytest.param(
            Deployment(build_named(), mutations=[label("a", "1"), label("b", "1"), label("a", "2")]),
            ("mutations: expected unique names, found 'a' twice; golden files and errors contain the name",),
            id="duplicate mutation name",
        ),
        pytest.param(
            Deployment(
                build_named(),
                mutations=[
                    Mutation("", lambda m: None),
                    Mutation("null", None),  # type: ignore[arg-type]
                    Mutation("slow", waits),  # type: ignore[arg-type]
                    Mutation("gated", lambda m: None, True),  # type: ignore[arg-type]
                    "tracing",  # type: ignore[list-item]
                ],
            ),
            (
                "mutations: expected a name for each mutation, found an empty one; golden files and errors contain it",
                "mutation 'null': mutate: expected a function, found NoneType",
                "mutation 'slow': mutate: expected a plain function, found a coroutine function; it runs in a "
                "reconcile and cannot await",
                "mutation 'gated': gate: expected an object with enabled(), found bool",
                "mutations: expected a Mutation, found str",
            ),
            id="mutations that are none",
        ),
        pytest.param(
            Deployment(build_named(), mutations=waits, extract=Data("port")),  # type: ignore[arg-type]
            ("mutations: expected a Mutation, found function", "extract: expected a function, found Data"),
            id="one that is neither a mutation nor a list of them",
        ),
        pytest.param(
            Deployment(build_named(), guard=True, extract=[None], grace_status=waits),  # type: ignore[arg-type, list-item]
            (
                "guard: expected a function, found bool",
                "grace_status: expected a plain function, found a coroutine function; it runs in a reconcile "
                "and cannot await",
                "extract: expected a function, found NoneType",
            ),
            id="functions that are none",
        ),
        pytest.param(
            Deployment(build_named(), requires=[None], optional_data=None, extract=Data("port").fill_with(waits)),  # type: ignore[list-item, arg-type]
            (
                "extract: expected a plain function, found a coroutine function; it runs in a reconcile "
                "and cannot await",
                "requires: expected Data, found NoneType",
                "optional_data: expected Data, found NoneType",
            ),
            id="data cells that are none",
        ),
        pytest.param(
            Deployment(build_named(), recreate="no", metrics_identifier=" "),  # type: ignore[arg-type]
            (
                "recreate: expected a bool, found str",
                "metrics_identifier: expected a name that is the same for all owners, found ' '",
            ),
            id="options of the wrong type",
        ),
    ],
)
def test_mistakes_are_collected(primitive: Primitive[Any], mistakes: tuple[str, ...]) -> None:
    assert primitive.errors == mistakes


def test_a_primitive_with_mistakes_raises_them_when_it_is_used() -> None:
    with pytest.raises(BuildError) as raised:
        Deployment({"metadata": {"name": "web"}}).render()
    assert raised.value.errors == ("metadata.namespace: expected a namespace for a Deployment, found none",)


def test_a_kind_of_one_s_own_needs_a_health_rule_and_a_mutator() -> None:
    class Widget(Static):
        gvk = GroupVersionKind("demo.konverge.dev", "v1", "Widget")

    assert Widget(build_named()).render() == build_widget()
