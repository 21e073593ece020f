"""The builder accepts valid declarations and reports all errors of an invalid one together."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any, cast

import pytest

from konverge._internal.component.resource_options import OnAbsence, ResourceMode
from konverge.component import ComponentBuilder
from konverge.errors import BuildError, KonvergeError
from konverge.feature import BooleanGate
from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.options import (
    Option,
    auxiliary,
    block_on_absence,
    block_on_foreign_controller,
    delete,
    delete_when,
    gated_by,
    ignore_if_absent,
    orphan_when,
    read_only,
    suppress_grace_inconsistency_warning,
    unowned,
)
from konverge.prerequisites import depends_on
from konverge.primitives import ConfigMap, Data, Static, Task

ON = BooleanGate(True)
NAMESPACED = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "settings", "namespace": "default"}}


def config(name: str = "settings", **options: Any) -> ConfigMap:
    return ConfigMap({"metadata": {"name": name, "namespace": "default"}, "data": {"colour": "blue"}}, **options)


def builder() -> ComponentBuilder:
    return ComponentBuilder("frontend", condition_type="FrontendReady")


class BrokenGate:
    def enabled(self) -> bool:
        raise RuntimeError("the licence server is away")


def test_five_mistakes_are_reported_together() -> None:
    broken = (
        ComponentBuilder("", condition_type="")
        .with_resource(config())
        .with_resource(config())
        .with_resource(config("old"), read_only(), delete())
        .with_grace_period(timedelta(seconds=-1))
    )
    with pytest.raises(BuildError) as caught:
        broken.build()
    assert len(caught.value.errors) == 5
    assert all(mistake in str(caught.value) for mistake in caught.value.errors)


ABSENT: Any = None
GUARDED, COLOUR = "v1/ConfigMap/default/settings", Data[str]("colour")
UNOWNED = "the component does not write a read-only object"
NO_RELEASE = "an object is either released or deleted"
NO_OWNING = (
    "the component neither deletes nor releases an object that it does not own. "
    "To leave a read-only resource out, use include_when"
)


def with_options(*options: Option) -> Callable[[], ComponentBuilder]:
    return lambda: builder().with_resource(config(), *options)


def with_resource(make: Callable[[], Any]) -> Callable[[], ComponentBuilder]:
    return lambda: builder().with_resource(make())


# Every error that a builder reports, with its whole text.
MISTAKES: list[Any] = [
    (
        lambda: ComponentBuilder("", condition_type="FrontendReady"),
        "it has no name: expected a short name such as 'frontend'",
    ),
    (lambda: ComponentBuilder("frontend"), "it has no condition type: expected one such as 'FrontendReady'"),
    *(
        (
            lambda given=given: ComponentBuilder("frontend", condition_type=given),
            f"its condition type is {given!r}: expected CamelCase, as 'FrontendReady'",
        )
        for given in ("Frontend Ready", "-Ready", "Ready!", "a/b/c")
    ),
    (with_resource(lambda: None), "a resource is None: expected a primitive. To leave one out, use include_when"),
    (
        lambda: builder().include_when(True, lambda: None),
        "a resource is None: expected a primitive. To leave one out, use include_when",
    ),
    (with_resource(dict), "a resource is a dict: expected a primitive"),
    (
        with_options(cast(Any, read_only)),
        f"{GUARDED}: an option: expected the result of a function such as options.read_only(), found function",
    ),
    (
        lambda: builder().with_feature_gate(cast(Any, True)),
        "its feature gate: expected one with enabled(), found bool",
    ),
    (
        lambda: builder().with_prerequisite(cast(Any, "BackendReady")),
        "a prerequisite: expected one with check(), as by depends_on(), found str",
    ),
    (
        lambda: builder().with_resource(config()).with_resource(config(), delete()),
        f"{GUARDED}: registered twice (managed, then delete); one object has one treatment",
    ),
    (
        lambda: builder().with_feature_gate(BooleanGate(True)).with_feature_gate(BooleanGate(True)),
        "it has two feature gates: a component takes one; join them into one gate",
    ),
    (
        lambda: builder().with_grace_period(timedelta(seconds=-1)),
        "its grace period is negative (-1 day, 23:59:59): expected zero (never ends) or more",
    ),
    (lambda: builder().with_grace_period(cast(Any, 5)), "its grace period: expected a timedelta, found int"),
    (lambda: builder().suspend(cast(Any, "no")), "suspend(): expected a bool, found str"),
    (
        lambda: builder().include_when(cast(Any, "no"), config),
        "include_when(): expected a bool, found str",
    ),
    (with_options(delete_when(cast(Any, "no"))), f"{GUARDED}: delete_when(): expected a bool, found str"),
    (with_options(orphan_when(cast(Any, None))), f"{GUARDED}: orphan_when(): expected a bool, found NoneType"),
    # Options that exclude each other, whatever their conditions say
    (with_options(read_only(), delete()), f"{GUARDED}: read_only() excludes delete(): {NO_OWNING}"),
    (with_options(read_only(), delete_when(False)), f"{GUARDED}: read_only() excludes delete_when(): {NO_OWNING}"),
    (with_options(read_only(), gated_by(ON)), f"{GUARDED}: read_only() excludes gated_by(): {NO_OWNING}"),
    (with_options(read_only(), orphan_when(False)), f"{GUARDED}: read_only() excludes orphan_when(): {NO_OWNING}"),
    (with_options(read_only(), unowned()), f"{GUARDED}: read_only() excludes unowned(): {UNOWNED}"),
    (
        with_options(read_only(), block_on_foreign_controller()),
        f"{GUARDED}: read_only() excludes block_on_foreign_controller(): {UNOWNED}",
    ),
    (with_options(orphan_when(False), delete()), f"{GUARDED}: orphan_when() excludes delete(): {NO_RELEASE}"),
    (
        with_options(orphan_when(True), delete_when(False)),
        f"{GUARDED}: orphan_when() excludes delete_when(): {NO_RELEASE}",
    ),
    (with_options(orphan_when(True), gated_by(ON)), f"{GUARDED}: orphan_when() excludes gated_by(): {NO_RELEASE}"),
    (
        with_options(orphan_when(False), unowned()),
        f"{GUARDED}: orphan_when() excludes unowned(): an unowned object has no owner reference to drop",
    ),
    (
        with_options(block_on_absence()),
        f"{GUARDED}: block_on_absence() requires read_only(): the component creates a managed object that is absent",
    ),
    (
        with_options(ignore_if_absent()),
        f"{GUARDED}: ignore_if_absent() requires read_only(): the component creates a managed object that is absent",
    ),
    (
        with_options(read_only(), block_on_absence(), ignore_if_absent()),
        f"{GUARDED}: block_on_absence() and ignore_if_absent() exclude each other",
    ),
    (
        with_options(gated_by(BrokenGate())),
        f"{GUARDED}: its gate cannot be evaluated: RuntimeError: the licence server is away",
    ),
    # What is wrong with the object or its functions
    (with_resource(lambda: ConfigMap(ABSENT)), "v1/ConfigMap/: expected an object, found None"),
    (
        with_resource(lambda: ConfigMap({"metadata": {"namespace": "default"}})),
        "v1/ConfigMap/default/: metadata.name: expected the object's name, found none",
    ),
    (
        with_resource(lambda: ConfigMap({"metadata": {"name": "settings"}})),
        "v1/ConfigMap/settings: metadata.namespace: expected a namespace for a ConfigMap, found none",
    ),
    (
        with_resource(lambda: Static(NAMESPACED, cluster_scoped=True)),
        "v1/Namespace/default/settings: metadata.namespace: expected none for a cluster-scoped Namespace, "
        "found 'default'",
    ),
    (
        with_resource(lambda: config(mutations=[Mutation("paint", print), Mutation("paint", print)])),
        f"{GUARDED}: mutations: expected unique names, found 'paint' twice; golden files and errors contain the name",
    ),
    (
        with_resource(lambda: config(mutations=Mutation("paint", ABSENT))),
        f"{GUARDED}: mutation 'paint': mutate: expected a function, found NoneType",
    ),
    (
        with_resource(lambda: Task(NAMESPACED, converging_status=ABSENT)),
        "v1/Namespace/default/settings: converging_status: expected a function, found None: konverge has no default "
        "for this kind",
    ),
    (
        with_resource(lambda: config(metrics_identifier="")),
        f"{GUARDED}: metrics_identifier: expected a name that is the same for all owners, found ''",
    ),
    (
        lambda: ComponentBuilder("it", condition_type="ItReady").with_prerequisite(depends_on("ItReady")),
        "it depends on its own condition ItReady, and would wait for itself: expected the condition type of another "
        "component",
    ),
    # What is wrong with the way of data
    (with_resource(lambda: config(requires=[ABSENT])), f"{GUARDED}: requires: expected Data, found NoneType"),
    (
        with_resource(lambda: config(requires=COLOUR)),
        f'{GUARDED}: it requires data "colour", which no resource fills: expected extract=cell.fill_with(...) on an '
        "earlier one",
    ),
]


@pytest.mark.parametrize(("broken", "mistake"), MISTAKES, ids=[mistake[:60] for _, mistake in MISTAKES])
def test_every_mistake_is_told_in_one_sentence(broken: Callable[[], ComponentBuilder], mistake: str) -> None:
    with pytest.raises(BuildError) as caught:
        broken().build()
    assert caught.value.errors == (mistake,)


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ([], ResourceMode.MANAGED),
        ([None], ResourceMode.MANAGED),
        ([read_only()], ResourceMode.READ_ONLY),
        ([delete()], ResourceMode.DELETE),
        ([delete_when(True)], ResourceMode.DELETE),
        ([delete_when(False)], ResourceMode.MANAGED),
        ([delete_when(False), delete_when(True)], ResourceMode.DELETE),
        ([gated_by(BooleanGate(True))], ResourceMode.MANAGED),
        ([gated_by(BooleanGate(False))], ResourceMode.DELETE),
        ([gated_by(None)], ResourceMode.MANAGED),
        ([gated_by(BooleanGate(True)), delete_when(True)], ResourceMode.DELETE),
        ([orphan_when(True)], ResourceMode.ORPHAN),
        ([orphan_when(False)], ResourceMode.MANAGED),
        ([orphan_when(False), orphan_when(True)], ResourceMode.ORPHAN),
    ],
)
def test_options_come_to_one_mode(options: list[Option | None], mode: ResourceMode) -> None:
    (entry,) = builder().with_resource(config(), *options).build().entries
    assert entry.treatment.mode is mode


def test_options_compose() -> None:
    component = builder().with_resource(
        config(), read_only(), ignore_if_absent(), auxiliary(), suppress_grace_inconsistency_warning()
    )
    (entry,) = component.build().entries
    assert entry.treatment.is_auxiliary
    assert entry.treatment.on_absence is OnAbsence.IGNORE
    assert not entry.treatment.warns_of_grace_inconsistency

    (entry,) = builder().with_resource(config(), unowned(), block_on_foreign_controller(), delete()).build().entries
    assert (entry.treatment.is_unowned, entry.treatment.blocks_on_foreign_controller) == (True, True)


def test_a_resource_left_out_is_never_constructed() -> None:
    def explode() -> ConfigMap:
        raise AssertionError("the factory was called")

    assert builder().include_when(False, explode, read_only()).build().entries == ()


def test_a_resource_left_out_is_no_duplicate() -> None:
    component = builder().with_resource(config()).include_when(False, config).build()
    assert len(component.entries) == 1


def test_none_as_gate_or_prerequisite_is_ignored() -> None:
    component = builder().with_feature_gate(None).with_prerequisite(None).build()
    assert (component.gate, component.prerequisites) == (None, ())


def test_the_last_call_of_suspend_counts() -> None:
    assert not builder().suspend(True).suspend(False).build().is_suspended


def test_resource_is_found_by_identity_in_any_mode() -> None:
    component = builder().with_resource(config(), read_only()).with_resource(config("old"), delete()).build()
    found = component.find_resource("v1/ConfigMap/default/old")
    assert found is not None
    assert found.key.name == "old"
    assert component.find_resource("v1/ConfigMap/default/none") is None


def test_a_component_cannot_be_changed() -> None:
    component = builder().with_resource(config()).build()

    with pytest.raises(FrozenInstanceError):
        component.is_suspended = True  # type: ignore[misc]

    assert isinstance(component.entries, tuple)


def test_what_is_registered_later_is_not_in_what_was_built() -> None:
    growing = builder().with_resource(config())
    component = growing.build()
    growing.with_resource(config("late"))
    assert len(component.entries) == 1


def test_mutations_of_managed_resources_are_told_once_and_in_order() -> None:
    def painted(*names: str, on: bool = True) -> list[Mutation[Any]]:
        return [Mutation(name, lambda _: None, BooleanGate(on)) for name in names]

    component = (
        builder()
        .with_resource(config("seen", mutations=painted("never")), read_only())
        .with_resource(config("gone", mutations=painted("neither")), delete())
        .with_resource(config("first", mutations=painted("paint", "polish")))
        .with_resource(config("second", mutations=painted("tracing", "paint", on=False)))
        .build()
    )

    assert component.registered_mutations() == ("paint", "polish", "tracing")
    assert component.firing_set() == ("paint", "polish")


def test_a_gate_that_fails_fails_the_firing_set() -> None:
    resource = config(mutations=Mutation("paint", lambda _: None, BrokenGate()))
    component = builder().with_resource(resource).build()
    assert component.registered_mutations() == ("paint",)
    with pytest.raises(KonvergeError, match=f"gate of mutation paint of resource {GUARDED}.*the licence server"):
        component.firing_set()


def test_preview_renders_managed_resources_only_and_asks_no_guard() -> None:
    component = (
        builder()
        .with_resource(config("seen"), read_only())
        .with_resource(config("first"))
        .with_resource(config("gone"), delete())
        .with_resource(config("free"), orphan_when(True))
        .with_resource(config("second", guard=lambda _: 1 / 0), auxiliary())
        .build()
    )
    previewed: list[Object] = component.preview()
    assert [obj["metadata"]["name"] for obj in previewed] == ["first", "second"]
