"""The names on the migration pages exist, and the examples run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import kopf
import pytest

import konverge
import konverge.mutation
import konverge.primitives
from konverge.crd import find_definition
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.docs.known_names import is_known, list_known_names
from tests.docs.pages import load_page_operator, read_page

GO, KOPF = "docs/from-the-go-framework.md", "docs/from-kopf.md"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")

# The editors of the Go framework with their methods; the fields' names are Kubernetes'.
GO_EDITORS = {
    "ObjectMetaEditor": "EnsureLabel RemoveLabel EnsureAnnotation RemoveAnnotation",
    "ContainerEditor": (
        "EnsureEnvVar EnsureEnvVars RemoveEnvVar RemoveEnvVars EnsureArg EnsureArgs RemoveArg RemoveArgs "
        "SetResourceLimit SetResourceRequest SetResources"
    ),
    "PodSpecEditor": (
        "SetServiceAccountName EnsureVolume RemoveVolume EnsureToleration RemoveTolerations "
        "EnsureNodeSelector RemoveNodeSelector EnsureImagePullSecret RemoveImagePullSecret "
        "SetPriorityClassName SetHostNetwork SetHostPID SetHostIPC SetSecurityContext"
    ),
    "DeploymentSpecEditor": (
        "SetReplicas SetPaused SetMinReadySeconds SetRevisionHistoryLimit SetProgressDeadlineSeconds"
    ),
    "StatefulSetSpecEditor": (
        "SetReplicas SetServiceName SetPodManagementPolicy SetUpdateStrategy SetRevisionHistoryLimit "
        "SetMinReadySeconds SetPersistentVolumeClaimRetentionPolicy"
    ),
    "DaemonSetSpecEditor": "SetUpdateStrategy SetMinReadySeconds SetRevisionHistoryLimit",
    "ReplicaSetSpecEditor": "SetReplicas SetMinReadySeconds",
    "JobSpecEditor": (
        "SetCompletions SetParallelism SetBackoffLimit SetActiveDeadlineSeconds SetTTLSecondsAfterFinished "
        "SetCompletionMode"
    ),
    "CronJobSpecEditor": (
        "SetSchedule SetConcurrencyPolicy SetStartingDeadlineSeconds SetSuccessfulJobsHistoryLimit "
        "SetFailedJobsHistoryLimit SetTimeZone"
    ),
    "HorizontalPodAutoscalerSpecEditor": (
        "SetScaleTargetRef SetMinReplicas SetMaxReplicas EnsureMetric RemoveMetric SetBehavior"
    ),
    "ServiceSpecEditor": (
        "SetType EnsurePort RemovePort SetSelector EnsureSelector RemoveSelector SetSessionAffinity "
        "SetSessionAffinityConfig SetPublishNotReadyAddresses SetExternalTrafficPolicy "
        "SetInternalTrafficPolicy SetLoadBalancerSourceRanges SetExternalName"
    ),
    "IngressSpecEditor": "SetIngressClassName SetDefaultBackend EnsureRule RemoveRule EnsureTLS RemoveTLS",
    "NetworkPolicySpecEditor": (
        "SetPodSelector AppendIngressRule AppendEgressRule RemoveIngressRules RemoveEgressRules SetPolicyTypes"
    ),
    "PersistentVolumeSpecEditor": (
        "SetCapacity SetAccessModes SetPersistentVolumeReclaimPolicy SetStorageClassName SetMountOptions "
        "SetVolumeMode SetNodeAffinity"
    ),
    "PersistentVolumeClaimSpecEditor": (
        "SetStorageRequest SetAccessModes SetStorageClassName SetVolumeMode SetVolumeName"
    ),
    "PodDisruptionBudgetSpecEditor": (
        "SetMinAvailable SetMaxUnavailable ClearMinAvailable ClearMaxUnavailable SetSelector "
        "SetUnhealthyPodEvictionPolicy ClearUnhealthyPodEvictionPolicy"
    ),
    "ConfigMapDataEditor": "Set Remove SetBinary RemoveBinary MergeYAML RawBinary",
    "SecretDataEditor": "Set Remove SetString RemoveString RawStringData",
    "PolicyRulesEditor": "AddRule RemoveRuleByIndex Clear",
    "BindingSubjectsEditor": "EnsureSubject RemoveSubject EnsureServiceAccount RemoveServiceAccount",
    "ContentEditor": "SetNestedField RemoveNestedField EnsureNestedStringMapEntry RemoveNestedStringMapEntry",
}

# Its mutators; the page lists the methods with other names here.
_POD = (
    "EditPodSpec EditContainers EditInitContainers EnsureContainer RemoveContainer RemoveContainers "
    "EnsureInitContainer RemoveInitContainer RemoveInitContainers EnsureContainerEnvVar RemoveContainerEnvVar "
    "RemoveContainerEnvVars EnsureContainerArg RemoveContainerArg RemoveContainerArgs EditObjectMetadata"
)
_TEMPLATE = f"{_POD} EditPodTemplateMetadata"
GO_MUTATORS = {
    "DeploymentMutator": f"{_TEMPLATE} EditDeploymentSpec EnsureReplicas",
    "StatefulSetMutator": (
        f"{_TEMPLATE} EditStatefulSetSpec EnsureReplicas EnsureVolumeClaimTemplate RemoveVolumeClaimTemplate"
    ),
    "DaemonSetMutator": f"{_TEMPLATE} EditDaemonSetSpec",
    "ReplicaSetMutator": f"{_TEMPLATE} EditReplicaSetSpec EnsureReplicas",
    "JobMutator": f"{_TEMPLATE} EditJobSpec",
    "CronJobMutator": f"{_TEMPLATE} EditCronJobSpec EditJobSpec",
    "PodMutator": _POD,
    "ServiceMutator": "EditServiceSpec",
    "IngressMutator": "EditIngressSpec",
    "NetworkPolicyMutator": "EditNetworkPolicySpec",
    "ConfigMapMutator": "EditData SetEntry RemoveEntry MergeYAML",
    "SecretMutator": "EditData SetData RemoveData SetStringData RemoveStringData",
    "PersistentVolumeMutator": "SetStorageClassName SetReclaimPolicy SetMountOptions",
    "PersistentVolumeClaimMutator": "SetStorageRequest",
    "PodDisruptionBudgetMutator": "EditSpec",
    "RoleMutator": "EditRules AddRule",
    "ClusterRoleMutator": "EditRules AddRule SetAggregationRule",
    "RoleBindingMutator": "EditSubjects",
    "ClusterRoleBindingMutator": "EditSubjects",
    "ServiceAccountMutator": "EnsureImagePullSecret RemoveImagePullSecret SetAutomountServiceAccountToken",
    "ContentMutator": "EditContent",
}


def find_documented_names(page: str, headings: str) -> list[str]:
    """Return the code in the last column of a page's tables with these headings."""
    tables = re.findall(rf"^\| {headings} \|\n\|[-|]+\|\n((?:\|.*\n)+)", read_page(page), re.MULTILINE)
    lines = [line for table in tables for line in table.splitlines()]
    return [code for line in lines for code in re.findall(r"`([^`]+)`", line.rpartition(" | ")[2])]


# Words in code that are no names of konverge.
FOREIGN = {
    "apiVersion", "hpa", "pv", "pvc", "pdb", "HPASpec", "PVSpec", "PVCSpec", "UnstructuredContent",
    "EditHPASpec", "EditPVSpec", "EditPVCSpec", "edit_<kind>_spec", "Ready",
}  # fmt: skip


@pytest.mark.slow
def test_every_name_of_konverge_that_the_page_for_go_has_exists() -> None:
    names = list_known_names()
    documented = find_documented_names(GO, r"in Go \| here")

    assert len(documented) > 150
    assert {code for code in documented if not is_known(code, names)} == FOREIGN


@pytest.mark.slow
def test_every_name_of_konverge_that_the_page_for_kopf_has_exists() -> None:
    names = list_known_names()
    documented = find_documented_names(KOPF, r"kopf \| here")

    assert len(documented) > 30
    assert {code for code in documented if not is_known(code, names)} == set()


def test_every_name_of_kopf_on_its_page_exists() -> None:
    documented = set(
        re.findall(r"kopf((?:\.\w+)+)", "\n".join(re.findall(r"^\| (.*?) \| ", read_page(KOPF), re.MULTILINE)))
    )

    assert len(documented) > 20
    assert [name for name in sorted(documented) if not is_of_kopf(name)] == []


def is_of_kopf(name: str) -> bool:
    found: Any = kopf
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found is not None


@pytest.mark.anyio
async def test_the_function_of_the_page_for_kopf_follows_its_source_and_repairs_its_copy(
    cluster: Cluster, tmp_path: Path
) -> None:
    operator = load_page_operator(KOPF, tmp_path)
    copy, client = find_definition(operator.custom_resources[0]).gvk, cluster.client
    target, source = ObjectKey(cluster.namespace, "home"), ObjectKey(cluster.namespace, "origin")

    def build_object(key: ObjectKey, gvk: GroupVersionKind, **fields: object) -> Object:
        metadata = {"name": key.name, "namespace": key.namespace}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **fields}

    async def holds(text: str) -> bool:
        return bool((await client.get(CONFIG_MAP, target))["data"] == {"text": text})

    async with cluster.run_operator(operator):
        await client.create(build_object(target, copy, spec={"source": "origin"}))
        await cluster.wait_for_condition(copy, "home", status="False", reason="NoSource")
        await client.create(build_object(source, CONFIG_MAP, data={"text": "one"}))
        await cluster.eventually(lambda: holds("one"), describe="the copy is there")
        await client.apply(build_object(source, CONFIG_MAP, data={"text": "two"}), field_manager="docs")
        await cluster.eventually(lambda: holds("two"), describe="the copy follows")
        await client.patch(CONFIG_MAP, target, {"data": {"text": "by hand"}}, patch_type="merge")
        await cluster.eventually(lambda: holds("two"), describe="the copy is repaired")
        await cluster.wait_for_condition(copy, "home", reason="Healthy")


@pytest.mark.anyio
async def test_the_mail_of_the_page_for_kopf_is_sent_once_also_over_a_restart(cluster: Cluster, tmp_path: Path) -> None:
    operator = load_page_operator(KOPF, tmp_path)
    definition, mails = find_definition(operator.custom_resources[0]), list[str]()
    sys.modules[definition.cls.__module__].send_mail = mails.append  # type: ignore[attr-defined]
    copy = definition.gvk
    metadata = {"name": "home", "namespace": cluster.namespace}

    async with cluster.run_operator(operator):
        owner = {"apiVersion": copy.api_version, "kind": copy.kind, "metadata": metadata}
        await cluster.client.create(owner | {"spec": {"source": "origin"}})
        await cluster.wait_for_condition(copy, "home", type="Announced", status="True")
        await cluster.wait_until_steady(operator.name)
    async with cluster.run_operator(operator):
        await cluster.wait_for_condition(copy, "home", status="False", reason="NoSource")
        await cluster.wait_until_steady(operator.name)

    assert mails == ["home is a copy of origin"]


@pytest.mark.parametrize("editor", GO_EDITORS)
def test_an_editor_has_the_go_methods_in_snake_case_or_sets_their_field(editor: str) -> None:
    cls = getattr(konverge.mutation, editor)
    methods = {name for name in dir(cls) if not name.startswith("_")}
    absent = [name for name in GO_EDITORS[editor].split() if snake(name) not in methods]

    # A method that sets or clears one field is `set` with that field.
    fields = {re.sub(r"^(Set|Clear)", "", name).lower() for name in absent}

    assert fields - {field.lower() for field in list_settable_fields(cls)} == set()
    assert "raw" in methods


@pytest.mark.parametrize("mutator", GO_MUTATORS)
def test_a_mutator_has_the_go_methods_in_snake_case(mutator: str) -> None:
    wanted = {snake(name) for name in GO_MUTATORS[mutator].split()}

    assert wanted - set(dir(getattr(konverge.primitives, mutator))) == set()


def list_settable_fields(editor: type[Any]) -> frozenset[str]:
    declared = getattr(sys.modules[editor.__module__], editor.__name__.replace("Editor", "Fields"), None)
    return declared.__optional_keys__ if declared else frozenset()


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
