"""The operator whose owners are built-in kinds, on both clusters."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner

from konverge._internal.cli.main import konverge as program
from konverge._internal.cli.operator_file import OperatorReference, load_operator
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import Operator
from konverge_cluster.testing import Cluster
from tests.docs.pages import REPOSITORY

FOLDER = REPOSITORY / "examples" / "budgets"
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
BUDGET = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
ANNOTATION = "conditions.konverge.dev/budgets"


@pytest.fixture
def operator() -> Operator:
    return load_operator(OperatorReference(FOLDER / "operator.py"))


def build_deployment(cluster: Cluster) -> Object:
    deployment: Object = yaml.safe_load((FOLDER / "deployment.yaml").read_text())
    deployment["metadata"]["namespace"] = cluster.namespace
    return deployment


async def wait_for_reason(cluster: Cluster, reason: str) -> Object:
    async def has_reason() -> Object | None:
        live = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))
        conditions = json.loads((live["metadata"].get("annotations") or {}).get(ANNOTATION, "[]"))
        return next((each for each in conditions if (each["type"], each["reason"]) == ("Ready", reason)), None)

    return await cluster.eventually(has_reason, describe=f"Ready is {reason}")


async def wait_for_budget(cluster: Cluster, number: int) -> None:
    async def has_number() -> bool:
        budget = await cluster.client.get(BUDGET, ObjectKey(cluster.namespace, "web"))
        return bool(budget["spec"]["maxUnavailable"] == number)

    await cluster.eventually(has_number, describe=f"the budget is {number}")


async def relabel(cluster: Cluster, text: str) -> None:
    body = {"metadata": {"labels": {"example.com/budget": text}}}
    await cluster.client.patch(DEPLOYMENT, ObjectKey(cluster.namespace, "web"), body, patch_type="merge")


@pytest.mark.anyio
async def test_a_labelled_deployment_has_a_budget_that_follows_the_label(cluster: Cluster, operator: Operator) -> None:
    async with cluster.run_operator(operator):
        await cluster.client.create(build_deployment(cluster))
        await wait_for_reason(cluster, "Healthy")
        await wait_for_budget(cluster, 1)
        await relabel(cluster, "2")
        await wait_for_budget(cluster, 2)
        await relabel(cluster, "many")
        failed = await wait_for_reason(cluster, "Error")
        await relabel(cluster, "1")
        await wait_for_reason(cluster, "Healthy")

    assert failed["message"] == "budget: label example.com/budget: expected a number of Pods, found 'many'"


@pytest.mark.anyio
async def test_the_budget_of_a_user_stays(cluster: Cluster, operator: Operator) -> None:
    metadata = {"name": "web", "namespace": cluster.namespace}
    spec = {"maxUnavailable": 3, "selector": {"matchLabels": {"app": "web"}}}
    own = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    await cluster.client.create(own)
    async with cluster.run_operator(operator):
        await cluster.client.create(build_deployment(cluster))
        blocked = await wait_for_reason(cluster, "Blocked")

    assert "exists already" in blocked["message"]
    await wait_for_budget(cluster, 3)


def test_the_command_line_knows_the_kinds_by_their_names() -> None:
    command = [str(FOLDER / "operator.py"), str(FOLDER / "deployment.yaml")]

    preview = CliRunner().invoke(program, ["preview", *command])
    rbac = CliRunner().invoke(program, ["rbac", command[0], "--sample", command[1]])
    crds = CliRunner().invoke(program, ["crd", command[0]])

    assert yaml.safe_load(preview.stdout)["spec"]["maxUnavailable"] == 1
    rules = [rule for doc in yaml.safe_load_all(rbac.stdout) for rule in doc.get("rules", ())]
    assert {"poddisruptionbudgets"} in [set(rule["resources"]) for rule in rules]
    assert "deployments/status" not in str(rules)
    assert crds.stdout.strip() in ("", "[]")
