"""Primitives for kinds that konverge does not know."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import Mutation
from konverge.primitives import (
    ContentMutator,
    Convergence,
    ConvergingStatus,
    GraceStatus,
    Integration,
    Operation,
    Primitive,
    Static,
    SuspensionStatus,
    Task,
    Workload,
    WorkloadKind,
)
from tests.primitives.objects import build_named, build_widget, is_up


@pytest.mark.parametrize(
    ("primitive", "grace", "is_suspendable"),
    [
        pytest.param(Workload(build_widget(), converging_status=is_up), GraceStatus.HEALTHY, True, id="workload"),
        pytest.param(Integration(build_widget(), converging_status=is_up), GraceStatus.HEALTHY, True, id="integration"),
        pytest.param(Task(build_widget(), converging_status=is_up), None, True, id="a task is not graded"),
        pytest.param(Static(build_widget()), None, False, id="static"),
    ],
)
def test_what_a_category_answers_by_default(
    primitive: Primitive[Any], grace: GraceStatus | None, is_suspendable: bool
) -> None:
    graded = primitive.grace_status({})
    assert (graded.status if graded else None) is grace
    assert primitive.is_suspendable is is_suspendable
    assert primitive.suspension_status({}).status is SuspensionStatus.SUSPENDED
    assert primitive.render(suspended=True) == primitive.render()
    assert primitive.deletes_on_suspend is False


def test_the_author_s_rule_judges() -> None:
    workload = Workload(build_widget(), converging_status=is_up)
    assert workload.converging_status({"up": True}, Operation.NONE) == Convergence(ConvergingStatus.HEALTHY)
    assert Static(build_widget()).converging_status({"up": True}, Operation.NONE) is None


def test_a_missing_rule_is_a_mistake() -> None:
    assert Workload(build_widget(), converging_status=None).errors == (  # type: ignore[arg-type]
        "converging_status: expected a function, found None: konverge has no default for this kind",
    )


def test_without_a_namespace_nothing_false_is_said_of_a_kind_whose_scope_only_the_author_knows() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "readers"}}

    assert Static(role).errors == (
        "metadata.namespace: expected a namespace for a ClusterRole, found none; if ClusterRole is a cluster-scoped "
        "kind, pass cluster_scoped=True",
    )
    assert Static(role, cluster_scoped=True).errors == ()


def test_suspension_is_the_author_s() -> None:
    def sleep(m: ContentMutator) -> None:
        m.edit_content(lambda content: content.set_nested_field(True, "spec", "hibernate"))

    workload = Workload(build_widget(), converging_status=is_up, suspend=sleep, delete_on_suspend=True)

    assert workload.render(suspended=True)["spec"] == {"hibernate": True}
    assert workload.deletes_on_suspend


def test_content_is_edited_by_path() -> None:
    grow = Mutation[ContentMutator](
        "grow", lambda m: m.edit_content(lambda content: content.set_nested_field(3, "spec", "size"))
    )
    assert Static(build_widget(spec={"size": 1}), mutations=grow).render()["spec"] == {"size": 3}


def test_a_kind_of_one_s_own_derives_from_its_category() -> None:
    class Widget(WorkloadKind[ContentMutator]):
        gvk = GroupVersionKind("demo.konverge.dev", "v1", "Widget")

        def create_mutator(self) -> ContentMutator:
            return ContentMutator()

        @staticmethod
        def default_converging_status(live: Object, operation: Operation) -> Convergence:
            return is_up(live, operation)

    mine = Widget(build_named())

    assert mine.render() == build_widget()
    assert mine.converging_status({"up": True}, Operation.NONE) == Convergence(ConvergingStatus.HEALTHY)
    assert Widget({"apiVersion": "v1", "kind": "Secret", **build_named()}).errors != ()
