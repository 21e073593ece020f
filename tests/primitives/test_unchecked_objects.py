"""Whatever a server sends, a default handler answers: one odd object must not fail a component."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.kube import Object
from konverge.primitives import (
    Convergence,
    Custom,
    CustomResourceDefinition,
    Deployment,
    Gateway,
    Grace,
    GraceStatus,
    HorizontalPodAutoscaler,
    HTTPRoute,
    Ingress,
    Namespace,
    Operation,
    PersistentVolume,
    PersistentVolumeClaim,
    Resource,
    Service,
    StatefulSet,
    Suspension,
)
from tests.primitives.objects import named, widget

KINDS: list[Resource] = [
    Deployment(named()),
    StatefulSet(named()),
    Service(named()),
    Ingress(named()),
    PersistentVolumeClaim(named()),
    PersistentVolume({"metadata": {"name": "web"}}),
    HorizontalPodAutoscaler(named()),
    Custom(widget()),
    Custom(widget(), required_conditions=("Ready", "Accepted")),
    Gateway(named()),
    HTTPRoute(named()),
    Namespace({"metadata": {"name": "web"}}),
    CustomResourceDefinition({"metadata": {"name": "web"}}),
]

FIELDS = {
    "metadata": ["generation", "deletionTimestamp"],
    "spec": ["replicas", "paused", "type", "updateStrategy", "parentRefs"],
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
    ],
}

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.floats()
    | st.sampled_from(["", "OnDelete", "LoadBalancer", "Bound", "ScalingActive", "Accepted", "True", "False"])
)
nested_names = st.sampled_from(
    "type rollingUpdate partition ingress ip hostname status message conditions observedGeneration parentRef name".split()
)
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
        assert isinstance(kind.grace_status(live), Grace)
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
conditions = st.builds(
    lambda of_type, status, seen: {"type": of_type, "status": status, "reason": "Tested", "message": ""} | seen,
    st.sampled_from(
        "AbleToScale ScalingActive Ready Stalled Reconciling Accepted Programmed ResolvedRefs Conflicted Established "
        "NamesAccepted".split()
    ),
    st.sampled_from(["True", "False", "Unknown"]),
    st.just({}) | st.fixed_dictionaries({"observedGeneration": counts}),
)
listed = st.lists(conditions, max_size=4)
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
                "phase": st.sampled_from(["Pending", "Available", "Bound", "Released", "Failed", "Lost", "Active"]),
                "conditions": listed,
                "listeners": st.lists(st.fixed_dictionaries({"conditions": listed}), max_size=1),
                "parents": st.lists(
                    st.fixed_dictionaries({"parentRef": st.just({"name": "web"}), "conditions": listed}), max_size=1
                ),
                "loadBalancer": st.sampled_from([{}, {"ingress": [{}]}, {"ingress": [{"ip": "192.0.2.1"}]}]),
            }
        ),
    }
)


@settings(deadline=None)
@given(live=well_formed, operation=st.sampled_from(Operation))
def test_grace_is_healthy_exactly_where_converging_is_ready(live: Object, operation: Operation) -> None:
    for kind in KINDS:
        converging, grace = kind.converging_status(live, operation), kind.grace_status(live)
        assert converging is not None
        assert grace is not None
        assert converging.status.is_ready == (grace.status is GraceStatus.HEALTHY)
