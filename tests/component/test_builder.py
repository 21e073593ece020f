"""What a builder accepts, what it refuses, and that it reports every mistake at once."""

from datetime import timedelta

import pytest

from konverge.component import (
    ComponentBuilder,
    Option,
    auxiliary,
    block_on_absence,
    delete,
    delete_when,
    gated_by,
    ignore_if_absent,
    orphan_when,
    read_only,
    suppress_grace_inconsistency_warning,
)
from konverge.component.options import Mode, OnAbsence
from konverge.errors import BuildError
from konverge.feature import BooleanGate
from konverge.kube import Object
from konverge.primitives import ConfigMap


def config(name: str = "settings") -> ConfigMap:
    return ConfigMap({"metadata": {"name": name, "namespace": "default"}, "data": {"colour": "blue"}})


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
    assert len(caught.value.mistakes) == 5
    assert all(mistake in str(caught.value) for mistake in caught.value.mistakes)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param([read_only(), delete()], "read_only() excludes delete()", id="read-only and delete"),
        pytest.param([read_only(), delete_when(False)], "read_only() excludes delete_when()", id="even when false"),
        pytest.param([read_only(), gated_by(BooleanGate(True))], "excludes gated_by()", id="read-only and gated"),
        pytest.param([read_only(), orphan_when(False)], "excludes orphan_when()", id="read-only and orphan"),
        pytest.param([orphan_when(False), delete()], "orphan_when() excludes delete()", id="orphan and delete"),
        pytest.param(
            [orphan_when(True), delete_when(False)], "orphan_when() excludes delete_when()", id="orphan, d. when"
        ),
        pytest.param([orphan_when(True), gated_by(BooleanGate(True))], "excludes gated_by()", id="orphan and gated"),
        pytest.param([block_on_absence()], "block_on_absence() needs read_only()", id="block on absence of a managed"),
        pytest.param([ignore_if_absent()], "ignore_if_absent() needs read_only()", id="ignore absence of a managed"),
        pytest.param([read_only(), block_on_absence(), ignore_if_absent()], "exclude each other", id="both absences"),
        pytest.param([gated_by(BrokenGate())], "the licence server is away", id="a gate that raises"),
    ],
)
def test_options_that_exclude_each_other_are_a_build_error(options: list[Option], told: str) -> None:
    with pytest.raises(BuildError) as caught:
        builder().with_resource(config(), *options).build()
    (mistake,) = caught.value.mistakes
    assert told in mistake
    assert mistake.startswith("v1/ConfigMap/default/settings: ")


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ([], Mode.MANAGED),
        ([None], Mode.MANAGED),
        ([read_only()], Mode.READ_ONLY),
        ([delete()], Mode.DELETE),
        ([delete_when(True)], Mode.DELETE),
        ([delete_when(False)], Mode.MANAGED),
        ([delete_when(False), delete_when(True)], Mode.DELETE),
        ([gated_by(BooleanGate(True))], Mode.MANAGED),
        ([gated_by(BooleanGate(False))], Mode.DELETE),
        ([gated_by(None)], Mode.MANAGED),
        ([gated_by(BooleanGate(True)), delete_when(True)], Mode.DELETE),
        ([orphan_when(True)], Mode.ORPHAN),
        ([orphan_when(False)], Mode.MANAGED),
        ([orphan_when(False), orphan_when(True)], Mode.ORPHAN),
    ],
)
def test_options_come_to_one_mode(options: list[Option | None], mode: Mode) -> None:
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


def test_a_resource_left_out_is_never_constructed() -> None:
    def explode() -> ConfigMap:
        raise AssertionError("the factory was called")

    assert builder().include_when(False, explode, read_only()).build().entries == ()


def test_a_resource_left_out_is_no_duplicate() -> None:
    component = builder().with_resource(config()).include_when(False, config).build()
    assert len(component.entries) == 1


def test_one_object_registered_twice_names_both_treatments() -> None:
    with pytest.raises(BuildError, match=r"v1/ConfigMap/default/settings: registered twice \(managed, then delete\)"):
        builder().with_resource(config()).with_resource(config(), delete()).build()


def test_none_as_a_resource_is_a_mistake() -> None:
    with pytest.raises(BuildError, match="a resource is None"):
        builder().with_resource(None).build()


def test_two_feature_gates_are_a_mistake() -> None:
    with pytest.raises(BuildError, match="two feature gates"):
        builder().with_feature_gate(BooleanGate(True)).with_feature_gate(BooleanGate(True)).build()


def test_none_as_gate_or_prerequisite_is_ignored() -> None:
    component = builder().with_feature_gate(None).with_prerequisite(None).build()
    assert (component.gate, component.prerequisites) == (None, ())


@pytest.mark.parametrize("condition_type", ["Frontend Ready", "-Ready", "Ready!", "a/b/c"])
def test_a_condition_type_that_the_api_would_refuse_is_a_mistake(condition_type: str) -> None:
    with pytest.raises(BuildError, match="condition type"):
        ComponentBuilder("frontend", condition_type=condition_type).build()


def test_a_grace_period_that_is_no_timedelta_is_a_mistake() -> None:
    with pytest.raises(BuildError, match="its grace period is a str: expected a timedelta"):
        builder().with_grace_period("5m").build()  # type: ignore[arg-type]


def test_a_text_does_not_suspend() -> None:
    with pytest.raises(BuildError, match=r"suspend\(\) was given a str: expected a bool"):
        builder().suspend("no").build()  # type: ignore[arg-type]


def test_the_last_call_of_suspend_counts() -> None:
    assert not builder().suspend(True).suspend(False).build().is_suspended


def test_resource_is_found_by_identity_in_any_mode() -> None:
    component = builder().with_resource(config(), read_only()).with_resource(config("old"), delete()).build()
    found = component.resource("v1/ConfigMap/default/old")
    assert found is not None
    assert found.key.name == "old"
    assert component.resource("v1/ConfigMap/default/none") is None


def test_preview_renders_managed_resources_only_and_asks_no_guard() -> None:
    component = (
        builder()
        .with_resource(config("seen"), read_only())
        .with_resource(config("first"))
        .with_resource(config("gone"), delete())
        .with_resource(config("second"), auxiliary())
        .build()
    )
    previewed: list[Object] = component.preview()
    assert [obj["metadata"]["name"] for obj in previewed] == ["first", "second"]
