"""The fields that the `set` of each editor accepts, and what it does with them."""

from __future__ import annotations

import sys
from types import NoneType
from typing import Any, Required, get_args, get_origin, get_type_hints

import pytest

from konverge.kube import Object
from konverge.mutation import (
    ContainerEditor,
    CronJobSpecEditor,
    DaemonSetSpecEditor,
    DeploymentSpecEditor,
    Editor,
    HorizontalPodAutoscalerSpecEditor,
    IngressSpecEditor,
    JobSpecEditor,
    NetworkPolicySpecEditor,
    PersistentVolumeClaimSpecEditor,
    PersistentVolumeSpecEditor,
    PodDisruptionBudgetSpecEditor,
    PodSpecEditor,
    ReplicaSetSpecEditor,
    ServiceSpecEditor,
    StatefulSetSpecEditor,
)
from konverge.types import apps_v1, autoscaling_v2, batch_v1, core_v1, meta_v1, networking_v1, policy_v1

TYPES = {
    module.__name__.rpartition(".")[2]: module
    for module in (apps_v1, autoscaling_v2, batch_v1, core_v1, meta_v1, networking_v1, policy_v1)
}
# The API type of each editor, and the fields that have an edit of their own or belong to the component's suspension.
EDITORS: list[tuple[type[Editor], Any, set[str]]] = [
    (ContainerEditor, core_v1.Container, set()),
    (CronJobSpecEditor, batch_v1.CronJobSpec, {"jobTemplate", "suspend"}),
    (DaemonSetSpecEditor, apps_v1.DaemonSetSpec, {"template"}),
    (DeploymentSpecEditor, apps_v1.DeploymentSpec, {"template"}),
    (HorizontalPodAutoscalerSpecEditor, autoscaling_v2.HorizontalPodAutoscalerSpec, set()),
    (IngressSpecEditor, networking_v1.IngressSpec, set()),
    (JobSpecEditor, batch_v1.JobSpec, {"suspend", "template"}),
    (NetworkPolicySpecEditor, networking_v1.NetworkPolicySpec, set()),
    (PersistentVolumeClaimSpecEditor, core_v1.PersistentVolumeClaimSpec, set()),
    (PersistentVolumeSpecEditor, core_v1.PersistentVolumeSpec, set()),
    (PodDisruptionBudgetSpecEditor, policy_v1.PodDisruptionBudgetSpec, set()),
    (PodSpecEditor, core_v1.PodSpec, {"containers", "initContainers"}),
    (ReplicaSetSpecEditor, apps_v1.ReplicaSetSpec, {"template"}),
    (ServiceSpecEditor, core_v1.ServiceSpec, set()),
    (StatefulSetSpecEditor, apps_v1.StatefulSetSpec, {"template", "volumeClaimTemplates"}),
]


def read_declared_types(editor: type[Editor]) -> dict[str, Any]:
    module = sys.modules[editor.__module__]
    declared = getattr(module, editor.__name__.replace("Editor", "Fields"))
    return get_type_hints(declared, localns=TYPES)


def read_api_types(api_type: Any) -> dict[str, Any]:
    """Return the type of each field; of an optional field, with None."""
    hints = get_type_hints(api_type, include_extras=True)
    return {
        name: get_args(hint)[0] if get_origin(hint) is Required else hint | NoneType for name, hint in hints.items()
    }


@pytest.mark.parametrize(("editor", "api_type", "excluded"), EDITORS)
def test_an_editor_sets_the_fields_of_its_api_type(editor: type[Editor], api_type: Any, excluded: set[str]) -> None:
    api_types = read_api_types(api_type)

    assert read_declared_types(editor) == {name: api_types[name] for name in api_types.keys() - excluded}


def test_several_fields_are_set_at_once() -> None:
    fields: Object = {"replicas": 1, "paused": True}
    DeploymentSpecEditor(fields).set(replicas=3, minReadySeconds=5)
    assert fields == {"replicas": 3, "paused": True, "minReadySeconds": 5}


def test_none_removes_a_field() -> None:
    fields: Object = {"replicas": 1, "paused": True}
    DeploymentSpecEditor(fields).set(paused=None, strategy=None)
    assert fields == {"replicas": 1}


def test_an_unknown_field_is_reported_with_the_closest_match() -> None:
    fields: Object = {}
    with pytest.raises(TypeError, match=r"^DeploymentSpecEditor.set: pausd: unknown field; did you mean 'paused'\?$"):
        DeploymentSpecEditor(fields).set(pausd=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert fields == {}


def test_suspension_cannot_be_set() -> None:
    with pytest.raises(TypeError, match=r"^CronJobSpecEditor.set: suspend: unknown field$"):
        CronJobSpecEditor({}).set(suspend=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
