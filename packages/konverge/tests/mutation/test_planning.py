"""In which order mutations and their edits are made."""

from __future__ import annotations

from typing import Any

import pytest

from konverge._internal.mutation import (
    ContainerEditor,
    Mutation,
    PodSpecEditor,
    WorkloadMutator,
    all_containers,
    apply_mutations,
    container_named,
    firing_set,
)
from konverge.errors import KonvergeError, TerminalError
from konverge.feature import BooleanGate
from konverge.kube import Object

WEB = "apps/v1/Deployment/default/web"


def workload(*containers: Object) -> Object:
    return {"metadata": {"name": "web"}, "spec": {"template": {"spec": {"containers": list(containers)}}}}


def containers_of(obj: Object) -> list[Object]:
    found: list[Object] = obj["spec"]["template"]["spec"]["containers"]
    return found


def mutate(obj: Object, *mutations: Mutation[WorkloadMutator]) -> Object:
    apply_mutations(obj, mutations, WorkloadMutator, identity=WEB)
    return obj


def test_mutations_apply_in_registration_order_and_later_ones_see_earlier_ones() -> None:
    add = Mutation[WorkloadMutator]("add", lambda m: m.ensure_container({"name": "proxy", "image": "proxy:1"}))
    pin = Mutation[WorkloadMutator](
        "pin", lambda m: m.edit_containers(container_named("proxy"), lambda c: c.raw().update(image="proxy:2"))
    )

    assert containers_of(mutate(workload(), add, pin)) == [{"name": "proxy", "image": "proxy:2"}]
    assert containers_of(mutate(workload(), pin, add)) == [{"name": "proxy", "image": "proxy:1"}]


def test_inside_a_mutation_the_category_decides_whatever_the_order_of_the_statements() -> None:
    made: list[str] = []

    def backwards(m: WorkloadMutator) -> None:
        m.edit_init_containers(all_containers(), lambda c: made.append("init container edits"))
        m.ensure_init_container({"name": "setup"})
        m.edit_containers(all_containers(), lambda c: made.append("container edits"))
        m.ensure_container({"name": "app"})
        m.edit_pod_spec(lambda s: made.append(f"pod spec, {len(s.raw().get('containers', []))} containers"))
        m.edit_pod_template_metadata(lambda _: made.append("pod template metadata"))
        m.edit_object_metadata(lambda _: made.append("object metadata"))

    mutate(workload(), Mutation("backwards", backwards))

    assert made == [
        "object metadata",
        "pod template metadata",
        "pod spec, 0 containers",
        "container edits",
        "init container edits",
    ]


def test_inside_a_category_edits_keep_their_order() -> None:
    def twice(m: WorkloadMutator) -> None:
        m.edit_object_metadata(lambda metadata: metadata.ensure_label("tier", "first"))
        m.edit_object_metadata(lambda metadata: metadata.ensure_label("tier", "second"))

    assert mutate(workload(), Mutation("twice", twice))["metadata"]["labels"] == {"tier": "second"}


def test_container_edits_go_container_by_container() -> None:
    made: list[tuple[str, str]] = []

    def note(edit: str) -> Any:
        return lambda container: made.append((container.raw()["name"], edit))

    def both(m: WorkloadMutator) -> None:
        m.edit_containers(all_containers(), note("first"))
        m.edit_containers(all_containers(), note("second"))

    mutate(workload({"name": "app"}, {"name": "proxy"}), Mutation("both", both))

    assert made == [("app", "first"), ("app", "second"), ("proxy", "first"), ("proxy", "second")]


def test_a_rename_does_not_disturb_what_other_selectors_of_the_mutation_match() -> None:
    def rename(m: WorkloadMutator) -> None:
        m.edit_containers(container_named("old"), lambda c: c.raw().update(name="new"))
        m.edit_containers(container_named("old"), lambda c: c.ensure_arg("--was-old"))
        m.edit_containers(container_named("new"), lambda c: c.ensure_arg("--never"))

    renamed = containers_of(mutate(workload({"name": "old"}), Mutation("rename", rename)))

    assert renamed == [{"name": "new", "args": ["--was-old"]}]


def test_selectors_see_containers_as_presence_operations_left_them() -> None:
    def replace(m: WorkloadMutator) -> None:
        m.edit_containers(all_containers(), lambda c: c.ensure_arg("--here"))
        m.remove_container("app")
        m.ensure_container({"name": "proxy"})

    replaced = containers_of(mutate(workload({"name": "app"}), Mutation("replace", replace)))

    assert replaced == [{"name": "proxy", "args": ["--here"]}]


def test_a_mutation_whose_gate_is_off_is_not_called() -> None:
    called: list[str] = []
    off = Mutation[WorkloadMutator]("off", lambda _: called.append("off"), BooleanGate(False))
    on = Mutation[WorkloadMutator]("on", lambda _: called.append("on"), BooleanGate(True))

    mutate(workload(), off, on, Mutation("always", lambda _: called.append("always")))

    assert called == ["on", "always"]
    assert firing_set([off, on], identity=WEB) == ("on",)


def test_nothing_is_edited_before_every_callback_has_recorded() -> None:
    def broken(_: WorkloadMutator) -> None:
        raise RuntimeError("no")

    obj = workload()
    label = Mutation[WorkloadMutator](
        "label", lambda m: m.edit_object_metadata(lambda metadata: metadata.ensure_label("a", "b"))
    )

    with pytest.raises(KonvergeError):
        mutate(obj, label, Mutation("broken", broken))
    assert obj == workload()


def test_absent_selectors_and_edits_are_ignored() -> None:
    def nothing(m: WorkloadMutator) -> None:
        m.edit_object_metadata(None)
        m.edit_pod_spec(None)
        m.edit_containers(None, lambda c: c.ensure_arg("--never"))
        m.edit_containers(all_containers(), None)

    assert mutate(workload({"name": "app"}), Mutation("nothing", nothing)) == workload({"name": "app"})


def test_an_edit_that_records_another_edit_is_an_error_instead_of_lost() -> None:
    def nested(m: WorkloadMutator) -> None:
        m.edit_pod_spec(lambda _: m.ensure_container({"name": "late"}))

    with pytest.raises(KonvergeError, match=r"planned mutations of nested: an edit recorded another edit"):
        mutate(workload(), Mutation("nested", nested))


def test_what_a_mutation_puts_in_stays_its_own() -> None:
    proxy: Object = {"name": "proxy", "env": [{"name": "MODE", "value": "slow"}]}

    def add(m: WorkloadMutator) -> None:
        m.ensure_container(proxy)
        m.edit_containers(container_named("proxy"), lambda c: c.ensure_env_var({"name": "MODE", "value": "fast"}))

    mutate(workload(), Mutation("add", add))

    assert proxy == {"name": "proxy", "env": [{"name": "MODE", "value": "slow"}]}


def test_container_edits_of_an_object_without_containers_do_nothing() -> None:
    bare: Object = {"metadata": {"name": "web"}}
    edit = Mutation[WorkloadMutator]("edit", lambda m: m.edit_containers(all_containers(), ContainerEditor.raw))
    mutate(bare, edit)
    assert bare["spec"]["template"]["spec"] == {}


class BrokenGate:
    def enabled(self) -> bool:
        raise RuntimeError("registry unreachable")


def fail_edit(spec: PodSpecEditor) -> None:
    raise LookupError("no such volume")


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        pytest.param(
            Mutation[WorkloadMutator]("tracing", lambda m: None, BrokenGate()),
            f"failed to mutate resource {WEB}: failed to apply mutation intent for tracing: "
            "RuntimeError: registry unreachable",
            id="gate",
        ),
        pytest.param(
            Mutation[WorkloadMutator]("tracing", lambda m: m.ensure_container({"image": "proxy"})),
            f"failed to mutate resource {WEB}: failed to apply mutation intent for tracing: "
            "ValueError: name: expected a non-empty string, found None",
            id="callback",
        ),
        pytest.param(
            Mutation[WorkloadMutator]("tracing", lambda m: m.edit_pod_spec(fail_edit)),
            f"failed to mutate resource {WEB}: failed to apply planned mutations of tracing: "
            "LookupError: no such volume",
            id="edit",
        ),
    ],
)
def test_a_failure_names_resource_and_mutation_and_keeps_its_cause(
    mutation: Mutation[WorkloadMutator], message: str
) -> None:
    with pytest.raises(KonvergeError) as raised:
        mutate(workload(), mutation)
    assert str(raised.value) == message
    assert raised.value.__cause__ is not None


def test_a_terminal_error_stays_terminal() -> None:
    def unsupported(_: WorkloadMutator) -> None:
        raise TerminalError("version 7 is not supported")

    with pytest.raises(TerminalError, match="intent for legacy: version 7 is not supported"):
        mutate(workload(), Mutation("legacy", unsupported))


def test_a_field_of_the_wrong_shape_is_named() -> None:
    obj: Object = {"metadata": {"name": "web", "labels": ["a"]}}
    label = Mutation[WorkloadMutator](
        "label", lambda m: m.edit_object_metadata(lambda metadata: metadata.ensure_label("a", "b"))
    )
    with pytest.raises(KonvergeError, match="labels: expected a mapping, found list"):
        mutate(obj, label)


def test_a_broken_gate_fails_the_firing_set_by_name() -> None:
    with pytest.raises(KonvergeError, match=f"the gate of mutation tracing of resource {WEB}"):
        firing_set([Mutation[WorkloadMutator]("tracing", lambda m: None, BrokenGate())], identity=WEB)
