"""A reconcile of ten resources through an operator's caches: it sends no request when nothing is left to write."""

from __future__ import annotations

import json

import pytest

from konverge.clock import SeededEntropy
from konverge.kube import ObjectKey
from konverge.operator import Operator, OwnerContext
from konverge_box._internal.steps import build_scope
from konverge_box._internal.steps.component_builder import build_component
from konverge_box._internal.steps.creation_marks import plan_marks
from konverge_box._internal.steps.labels import CREATED, OWNER_UID
from konverge_box.expressions import EvaluationEnvironment
from konverge_cluster.testing import Cluster
from tests.box.steps.sample_plans import parse_groups
from tests.operator.sample_operator import SHOP, Shop

pytestmark = pytest.mark.anyio

TEN = """
onCreate:
  secrets: [{name: "{{ metadata.name }}-key", once: true, stringData: {key: "{{ randomHex(16) }}"}}]
  jobs: [{name: "{{ metadata.name }}-setup", image: "konverge.test/app:1"}]
onReconcile:
  - name: web
    deployments: [{image: "konverge.test/app:1", replicas: "{{ spec.replicas }}", port: 8080}]
    services: [{port: 80, targetPort: 8080}]
    serviceAccounts: [{}]
    configMaps:
      - {data: {greeting: "{{ spec.greeting }}"}}
      - name: "{{ metadata.name }}-{{ word }}"
        forEach: {field: spec.words, as: word}
        data: {word: "{{ word }}"}
      - {name: never, when: [{field: spec.greeting, equals: no}]}
"""


async def test_at_rest_a_pass_over_ten_objects_sends_no_request(cluster: Cluster) -> None:
    groups = parse_groups(TEN)
    operator = Operator("resting-box")
    for gvk in groups.kinds:
        operator.index(gvk, OWNER_UID)(lambda obj: [(obj["metadata"].get("labels") or {}).get(OWNER_UID, "")])
    passes = 0

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        nonlocal passes
        owner = {**ctx.owner, "spec": {**ctx.owner["spec"], "words": ["a", "b", "c", "d"]}}
        now = ctx.clock.now()
        plan = await groups.plan(
            build_scope(owner, EvaluationEnvironment(now=now, entropy=SeededEntropy(1))), owner, ctx.cluster, now
        )
        async with ctx.flushing_status():
            for group in plan.groups:
                await build_component(group).reconcile(ctx)
        marks = await plan_marks(plan, owner, ctx.cluster)
        if marks is not None:
            body = {"metadata": {"annotations": {CREATED: json.dumps(marks)}}}
            await ctx.cluster.patch(SHOP, ctx.owner_key, body, patch_type="merge")
        passes += 1

    shop = {
        "apiVersion": SHOP.api_version,
        "kind": SHOP.kind,
        "metadata": {"name": "corner", "namespace": cluster.namespace},
        "spec": {"greeting": "Hello", "replicas": 1},
    }
    async with cluster.run_operator(operator):
        await cluster.client.create(shop)
        await cluster.wait_for_condition(SHOP, "corner", type="WebReady")
        await cluster.wait_for_condition(SHOP, "corner", type="CreatedReady")
        await cluster.wait_until_steady(operator.name)
        before, asked = passes, len(cluster.list_requests(operator.name))

        await cluster.client.patch(
            SHOP, ObjectKey(cluster.namespace, "corner"), {"metadata": {"labels": {"a": "b"}}}, patch_type="merge"
        )
        await cluster.eventually(lambda: passes > before, describe="another pass")
        await cluster.clock.sleep(1)

        assert [str(each) for each in cluster.list_requests(operator.name)[asked:]] == []
