"""Whatever a server sends, a default handler answers: one odd object must not fail a component."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.kube import Object
from konverge.primitives import (
    Convergence,
    CronJob,
    Custom,
    CustomResourceDefinition,
    DaemonSet,
    Deployment,
    Gateway,
    Grace,
    GraceStatus,
    HorizontalPodAutoscaler,
    HTTPRoute,
    Ingress,
    Job,
    Namespace,
    Operation,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    Resource,
    Service,
    StatefulSet,
    Suspension,
)
from tests.primitives.objects import build_named, build_widget, list_classes

GRADED: list[Resource] = [
    Deployment(build_named()),
    StatefulSet(build_named()),
    DaemonSet(build_named()),
    ReplicaSet(build_named()),
    Pod(build_named()),
    CronJob(build_named()),
    Service(build_named()),
    Ingress(build_named()),
    PersistentVolumeClaim(build_named()),
    PersistentVolume({"metadata": {"name": "web"}}),
    HorizontalPodAutoscaler(build_named()),
    Custom(build_widget()),
    Custom(build_widget(), required_conditions=("Ready", "Accepted")),
    Gateway(build_named()),
    HTTPRoute(build_named()),
    Namespace({"metadata": {"name": "web"}}),
    CustomResourceDefinition({"metadata": {"name": "web"}}),
]
KINDS: list[Resource] = [*GRADED, Job(build_named())]


def test_every_kind_with_a_default_is_among_them() -> None:
    judged = {name for name, found in list_classes().items() if hasattr(found, "default_converging_status")}

    assert {type(kind).__name__ for kind in KINDS} == judged


FIELDS = {
    "metadata": ["generation", "deletionTimestamp"],
    "spec": ["replicas", "paused", "type", "updateStrategy", "suspend", "parentRefs"],
    "status": [
        "observedGeneration",
        "replicas",
        "readyReplicas",
        "updatedReplicas",
        "currentRevision",
        "updateRevision",
        "loadBalancer",
        "phase",
        "message",
        "conditions",
        "listeners",
        "parents",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "active",
        "reason",
        "containerStatuses",
        "initContainerStatuses",
    ],
}

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.floats()
    | st.sampled_from(["", "OnDelete", "LoadBalancer", "Bound", "ScalingActive", "Accepted", "True", "False"])
)
nested_names = st.sampled_from(["type", "rollingUpdate", "partition", "ingress", "ip", "hostname", "status", "message"])
nested_names |= st.sampled_from(["conditions", "observedGeneration", "parentRef", "name"])
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(nested_names, inner, max_size=3), max_leaves=6
)
live_objects = st.fixed_dictionaries(
    {},
    optional={part: leaves | st.dictionaries(st.sampled_from(names), values) for part, names in FIELDS.items()},
)


@settings(deadline=None)
@given(live=live_objects, operation=st.sampled_from(Operation))
def test_default_handlers_never_raise(live: dict[str, Any], operation: Operation) -> None:
    for kind in KINDS:
        assert isinstance(kind.converging_status(live, operation), Convergence)
        assert isinstance(kind.grace_status(live), Grace | None)
        assert isinstance(kind.suspension_status(live), Suspension)


counts = st.integers(0, 3)
revisions = st.sampled_from(["a", "b"])
strategies = st.sampled_from(
    [
        {"type": "OnDelete"},
        {"type": "RollingUpdate"},
        {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
    ]
)
CONDITIONS = [
    "Accepted",
    "AbleToScale",
    "Complete",
    "Conflicted",
    "Established",
    "Failed",
    "NamesAccepted",
    "PodScheduled",
    "Programmed",
    "Progressing",
    "Ready",
    "Reconciling",
    "ReplicaFailure",
    "ResolvedRefs",
    "ScalingActive",
    "Stalled",
]
said = st.fixed_dictionaries(
    {"status": st.sampled_from(["True", "False", "Unknown"]), "reason": st.just("Tested"), "message": st.just("")},
    optional={"observedGeneration": counts},
)
conditions = st.fixed_dictionaries({}, optional=dict.fromkeys(CONDITIONS, said)).map(
    lambda found: [{"type": name, **fields} for name, fields in found.items()]
)
container_states = st.sampled_from(
    [
        {"running": {}},
        {"waiting": {"reason": "CrashLoopBackOff"}},
        {"waiting": {"reason": "ImagePullBackOff"}},
        {"terminated": {"exitCode": 0}},
        {"terminated": {"exitCode": 1}},
    ]
)
containers = st.builds(
    lambda ready, state: {"name": "main", "ready": ready, "state": state}, st.booleans(), container_states
)
# A copy: a test changes the object, and `sampled_from` would return its changed values in the next example.
well_formed = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"generation": counts}, optional={"deletionTimestamp": st.just("2026-01-01T00:00:00Z")}
        ),
        "spec": st.fixed_dictionaries(
            {
                "replicas": counts,
                "paused": st.booleans(),
                "type": st.sampled_from(["ClusterIP", "LoadBalancer"]),
                "updateStrategy": strategies,
                "suspend": st.booleans(),
                "parentRefs": st.sampled_from([[], [{"name": "web"}]]),
            }
        ),
        "status": st.fixed_dictionaries(
            {
                "observedGeneration": counts,
                "replicas": counts,
                "readyReplicas": counts,
                "updatedReplicas": counts,
                "currentRevision": revisions,
                "updateRevision": revisions,
                "phase": st.sampled_from(
                    ["Pending", "Running", "Available", "Bound", "Released", "Failed", "Lost", "Active"]
                ),
                "conditions": conditions,
                "desiredNumberScheduled": counts,
                "numberReady": counts,
                "updatedNumberScheduled": counts,
                "active": counts,
                "containerStatuses": st.lists(containers, max_size=2),
                "initContainerStatuses": st.lists(containers, max_size=1),
                "listeners": st.lists(st.fixed_dictionaries({"conditions": conditions}), max_size=1),
                "parents": st.lists(
                    st.fixed_dictionaries({"parentRef": st.just({"name": "web"}), "conditions": conditions}), max_size=1
                ),
                "loadBalancer": st.sampled_from([{}, {"ingress": [{}]}, {"ingress": [{"ip": "192.0.2.1"}]}]),
            }
        ),
    }
).map(deepcopy)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each mapping and list inside with each of its keys and indexes."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


@pytest.mark.slow
@settings(deadline=None)
@given(live=well_formed, odd=leaves | values, operation=st.sampled_from(Operation), data=st.data())
def test_no_field_of_another_type_makes_a_default_handler_raise(
    live: Object, odd: Any, operation: Operation, data: st.DataObject
) -> None:
    parent, key = data.draw(st.sampled_from(list(places(live))))
    parent[key] = odd
    for kind in KINDS:
        assert isinstance(kind.converging_status(live, operation), Convergence)
        assert isinstance(kind.grace_status(live), Grace | None)
        assert isinstance(kind.suspension_status(live), Suspension)


@pytest.mark.slow
@settings(deadline=None)
@given(live=well_formed, operation=st.sampled_from(Operation))
def test_grace_is_healthy_exactly_where_converging_is_ready(live: Object, operation: Operation) -> None:
    for kind in GRADED:
        converging, grace = kind.converging_status(live, operation), kind.grace_status(live)
        assert converging is not None
        assert grace is not None
        assert converging.status.is_ready == (grace.status is GraceStatus.HEALTHY)
