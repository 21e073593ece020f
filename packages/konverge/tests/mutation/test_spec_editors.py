"""The editors of specs outside workloads, one table each: what was there, what is done, what is there then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge._internal.mutation.field_editing import copy_json
from konverge.kube import Object
from konverge.mutation import (
    Editor,
    HorizontalPodAutoscalerSpecEditor,
    IngressSpecEditor,
    NetworkPolicySpecEditor,
    PersistentVolumeClaimSpecEditor,
    PersistentVolumeSpecEditor,
    PodDisruptionBudgetSpecEditor,
)


def case(name: str, before: Object, edit: Callable[[Any], None], after: Object) -> Any:
    return pytest.param(before, edit, after, id=name)


def edit_spec(editor: Callable[[Object], Editor], before: Object, edit: Callable[[Any], None]) -> Object:
    """What is there afterwards; the cases share their objects, so each gets a copy."""
    fields: Object = copy_json(before)
    edit(editor(fields))
    return fields


BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
SHOP = {"host": "shop.test", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
DOCS = {"host": "docs.test"}
ANY_HOST: Object = {"http": {"paths": []}}
SHOP_TLS = {"hosts": ["shop.test", "www.shop.test"], "secretName": "shop"}
DOCS_TLS = {"hosts": ["docs.test"], "secretName": "docs"}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("class", {}, lambda e: e.set(ingressClassName="web"), {"ingressClassName": "web"}),
        case("rule", {"rules": [SHOP]}, lambda e: e.ensure_rule(DOCS), {"rules": [SHOP, DOCS]}),
        case(
            "rule replaced by host",
            {"rules": [{"host": "shop.test"}, DOCS]},
            lambda e: e.ensure_rule(SHOP),
            {"rules": [SHOP, DOCS]},
        ),
        case(
            "rule for all hosts, by whichever spelling",
            {"rules": [SHOP, {"host": ""}]},
            lambda e: e.ensure_rule(ANY_HOST),
            {"rules": [SHOP, ANY_HOST]},
        ),
        case("rule removed", {"rules": [SHOP, DOCS]}, lambda e: e.remove_rule("shop.test"), {"rules": [DOCS]}),
        case("rule for all hosts removed", {"rules": [ANY_HOST]}, lambda e: e.remove_rule(""), {}),
        case("no rule to remove", {"rules": [DOCS]}, lambda e: e.remove_rule("shop.test"), {"rules": [DOCS]}),
        case("TLS", {"tls": [DOCS_TLS]}, lambda e: e.ensure_tls(SHOP_TLS), {"tls": [DOCS_TLS, SHOP_TLS]}),
        case(
            "TLS replaced by first host",
            {"tls": [{"hosts": ["shop.test"], "secretName": "old"}]},
            lambda e: e.ensure_tls(SHOP_TLS),
            {"tls": [SHOP_TLS]},
        ),
        case(
            "TLS of another first host appended",
            {"tls": [{"hosts": ["www.shop.test", "shop.test"]}]},
            lambda e: e.ensure_tls(SHOP_TLS),
            {"tls": [{"hosts": ["www.shop.test", "shop.test"]}, SHOP_TLS]},
        ),
        case(
            "TLS without hosts",
            {"tls": [SHOP_TLS, {"secretName": "old"}]},
            lambda e: e.ensure_tls({"hosts": [], "secretName": "new"}),
            {"tls": [SHOP_TLS, {"hosts": [], "secretName": "new"}]},
        ),
        case("TLS removed", {"tls": [SHOP_TLS]}, lambda e: e.remove_tls("shop.test"), {}),
        case("TLS kept", {"tls": [SHOP_TLS]}, lambda e: e.remove_tls("www.shop.test"), {"tls": [SHOP_TLS]}),
    ],
)
def test_ingress_spec(before: Object, edit: Callable[[IngressSpecEditor], None], after: Object) -> None:
    assert edit_spec(IngressSpecEditor, before, edit) == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case(
            "request",
            {"resources": {"limits": {"storage": "9Gi"}}},
            lambda e: e.set_storage_request("1Gi"),
            {"resources": {"limits": {"storage": "9Gi"}, "requests": {"storage": "1Gi"}}},
        ),
        case(
            "modes",
            {"accessModes": ["ReadOnlyMany"]},
            lambda e: e.set(accessModes=("ReadWriteOnce",)),
            {"accessModes": ["ReadWriteOnce"]},
        ),
    ],
)
def test_persistent_volume_claim_spec(
    before: Object, edit: Callable[[PersistentVolumeClaimSpecEditor], None], after: Object
) -> None:
    assert edit_spec(PersistentVolumeClaimSpecEditor, before, edit) == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case(
            "capacity",
            {"capacity": {"storage": "1Gi"}},
            lambda e: e.set_capacity("2Gi"),
            {"capacity": {"storage": "2Gi"}},
        ),
        case("modes", {}, lambda e: e.set(accessModes=["ReadWriteOnce"]), {"accessModes": ["ReadWriteOnce"]}),
    ],
)
def test_persistent_volume_spec(
    before: Object, edit: Callable[[PersistentVolumeSpecEditor], None], after: Object
) -> None:
    assert edit_spec(PersistentVolumeSpecEditor, before, edit) == after


def metric(metric_type: str, *, target: int = 1, **source: Any) -> Object:
    """A metric with its source where its type has it."""
    return {"type": metric_type, metric_type[:1].lower() + metric_type[1:]: {**source, "target": {"value": target}}}


def build_named_metric(metric_type: str, *, target: int = 1, selector: Object | None = None, **source: Any) -> Object:
    """A metric by name, and by selector if there is one."""
    name = {"name": "load"} if selector is None else {"name": "load", "selector": selector}
    return metric(metric_type, target=target, metric=name, **source)


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
A = {"matchLabels": {"a": "1", "b": "2"}}
A_REORDERED = {"matchLabels": {"b": "2", "a": "1"}}
B = {"matchLabels": {"b": "2"}}
ALIKE = [
    pytest.param(metric("Resource", name="cpu"), metric("Resource", name="cpu", target=2), id="resource"),
    pytest.param(
        metric("ContainerResource", name="cpu", container="a"),
        metric("ContainerResource", name="cpu", container="a", target=2),
        id="container",
    ),
    pytest.param(build_named_metric("Pods"), build_named_metric("Pods", target=2), id="pods"),
    pytest.param(
        build_named_metric("Pods", selector=A),
        build_named_metric("Pods", selector=A_REORDERED, target=2),
        id="selector",
    ),
    pytest.param(build_named_metric("External"), build_named_metric("External", target=2), id="external"),
    pytest.param(
        build_named_metric("Object", describedObject=DEPLOYMENT),
        build_named_metric("Object", describedObject=dict(reversed(DEPLOYMENT.items())), target=2),
        id="object",
    ),
]
DIFFERENT = [
    pytest.param(metric("Resource", name="cpu"), metric("Resource", name="memory"), id="resource"),
    pytest.param(metric("Resource", name="cpu"), metric("ContainerResource", name="cpu", container="a"), id="type"),
    pytest.param(
        metric("ContainerResource", name="cpu", container="a"),
        metric("ContainerResource", name="cpu", container="b"),
        id="container",
    ),
    pytest.param(build_named_metric("Pods"), build_named_metric("Pods", selector=A), id="a selector and none"),
    pytest.param(build_named_metric("Pods", selector=A), build_named_metric("Pods", selector=B), id="selector"),
    pytest.param(build_named_metric("External", selector=A), build_named_metric("External", selector=B), id="external"),
    pytest.param(build_named_metric("External"), build_named_metric("Pods"), id="type of a named metric"),
    pytest.param(
        build_named_metric("Object", describedObject=DEPLOYMENT),
        build_named_metric("Object", describedObject={**DEPLOYMENT, "name": "api"}),
        id="described object",
    ),
    pytest.param(
        build_named_metric("Object", describedObject=DEPLOYMENT, selector=A),
        build_named_metric("Object", describedObject=DEPLOYMENT, selector=B),
        id="selector of an object's",
    ),
]


@pytest.mark.parametrize(("there", "ensured"), ALIKE)
def test_the_same_metric_is_replaced_in_its_place(there: Object, ensured: Object) -> None:
    other = metric("Resource", name="other")
    after = edit_spec(
        HorizontalPodAutoscalerSpecEditor, {"metrics": [there, other]}, lambda e: e.ensure_metric(ensured)
    )
    assert after == {"metrics": [ensured, other]}


@pytest.mark.parametrize(("there", "ensured"), DIFFERENT)
def test_a_metric_that_differs_in_any_part_of_its_identity_is_appended(there: Object, ensured: Object) -> None:
    after = edit_spec(HorizontalPodAutoscalerSpecEditor, {"metrics": [there]}, lambda e: e.ensure_metric(ensured))
    assert after == {"metrics": [there, ensured]}


@pytest.mark.parametrize(
    "nameless",
    [
        {},
        {"type": "Resource"},
        {"type": "Resource", "resource": {}},
        {"type": "Pods", "pods": {"name": "load"}},
        {"type": "Pods", "pods": {"metric": {"name": ""}}},
        {"type": "resource", "resource": {"name": "cpu"}},
    ],
)
def test_a_metric_that_could_not_be_found_again_is_refused(nameless: Object) -> None:
    with pytest.raises(ValueError, match="^metric: expected a type"):
        HorizontalPodAutoscalerSpecEditor({}).ensure_metric(nameless)


def test_odd_metrics_that_are_there_are_left_alone() -> None:
    odd = [None, "cpu", {"type": ["Resource"]}, {"type": "Resource", "resource": "cpu"}]
    cpu = metric("Resource", name="cpu")

    def edit(e: HorizontalPodAutoscalerSpecEditor) -> None:
        e.ensure_metric(cpu)
        e.remove_metric("Resource", "memory")

    assert edit_spec(HorizontalPodAutoscalerSpecEditor, {"metrics": odd}, edit) == {"metrics": [*odd, cpu]}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("target", {}, lambda e: e.set(scaleTargetRef=DEPLOYMENT), {"scaleTargetRef": DEPLOYMENT}),
        case(
            "metrics removed, whatever their selector",
            {
                "metrics": [
                    build_named_metric("Pods"),
                    build_named_metric("Pods", selector=A),
                    build_named_metric("External"),
                ]
            },
            lambda e: e.remove_metric("Pods", "load"),
            {"metrics": [build_named_metric("External")]},
        ),
        case(
            "last metric removed",
            {"metrics": [metric("Resource", name="cpu")]},
            lambda e: e.remove_metric("Resource", "cpu"),
            {},
        ),
        case("behavior cleared", {"behavior": {"scaleUp": {}}}, lambda e: e.set(behavior=None), {}),
        case("no behavior to clear", {}, lambda e: e.set(behavior=None), {}),
    ],
)
def test_horizontal_pod_autoscaler_spec(
    before: Object, edit: Callable[[HorizontalPodAutoscalerSpecEditor], None], after: Object
) -> None:
    assert edit_spec(HorizontalPodAutoscalerSpecEditor, before, edit) == after


WEB = {"ports": [{"port": 80}]}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case(
            "selector replaced",
            {"podSelector": {"matchLabels": {"a": "b"}}},
            lambda e: e.set(podSelector={}),
            {"podSelector": {}},
        ),
        case("ingress", {}, lambda e: e.append_ingress_rule(WEB), {"ingress": [WEB]}),
        case(
            "the same ingress again",
            {"ingress": [WEB]},
            lambda e: e.append_ingress_rule(WEB),
            {"ingress": [WEB, WEB]},
        ),
        case("egress", {"egress": [WEB]}, lambda e: e.append_egress_rule({}), {"egress": [WEB, {}]}),
        case("ingress removed", {"ingress": [WEB], "egress": []}, lambda e: e.remove_ingress_rules(), {"egress": []}),
        case("egress removed", {"egress": [WEB]}, lambda e: e.remove_egress_rules(), {}),
        case("nothing to remove", {}, lambda e: e.remove_egress_rules(), {}),
    ],
)
def test_network_policy_spec(before: Object, edit: Callable[[NetworkPolicySpecEditor], None], after: Object) -> None:
    assert edit_spec(NetworkPolicySpecEditor, before, edit) == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("available", {}, lambda e: e.set(minAvailable=1), {"minAvailable": 1}),
        case("available cleared", {"minAvailable": 1}, lambda e: e.set(minAvailable=None), {}),
        case("unavailable cleared", {"maxUnavailable": 1}, lambda e: e.set(maxUnavailable=None), {}),
        case("nothing to clear", {}, lambda e: e.set(maxUnavailable=None), {}),
        case(
            "eviction cleared",
            {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
            lambda e: e.set(unhealthyPodEvictionPolicy=None),
            {},
        ),
    ],
)
def test_pod_disruption_budget_spec(
    before: Object, edit: Callable[[PodDisruptionBudgetSpecEditor], None], after: Object
) -> None:
    assert edit_spec(PodDisruptionBudgetSpecEditor, before, edit) == after


@pytest.mark.parametrize(
    ("editor", "put"),
    [
        pytest.param(IngressSpecEditor, lambda e, value: e.set(defaultBackend=value), id="backend"),
        pytest.param(PersistentVolumeSpecEditor, lambda e, value: e.set(nodeAffinity=value), id="affinity"),
        pytest.param(HorizontalPodAutoscalerSpecEditor, lambda e, value: e.set(behavior=value), id="behavior"),
        pytest.param(NetworkPolicySpecEditor, lambda e, value: e.set(podSelector=value), id="pod selector"),
        pytest.param(NetworkPolicySpecEditor, lambda e, value: e.append_ingress_rule(value), id="ingress rule"),
        pytest.param(PodDisruptionBudgetSpecEditor, lambda e, value: e.set(selector=value), id="selector"),
    ],
)
def test_a_value_is_copied_on_its_way_in(
    editor: Callable[[Object], Editor], put: Callable[[Any, Object], None]
) -> None:
    given: Object = {"a": {"b": "c"}}
    fields: Object = {}
    put(editor(fields), given)
    given["a"]["b"] = "changed later"
    assert "changed later" not in str(fields)
