from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge.kube import GroupVersionKind, Object, format_time
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.builtin_resources import list_builtin_resources
from konverge_cluster._internal.embedded.tables import build_row, list_columns
from konverge_cluster._internal.embedded.tables.jsonpath import find_value
from konverge_cluster._internal.embedded.tables.printers import format_duration
from tests.cluster.embedded.objects import DEFINITION, WEBAPP, config_map, webapp, webapp_definition
from tests.cluster.embedded.request_client import TABLE, RequestClient

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RESOURCES = {each.gvk: each for each in list_builtin_resources()}


def ago(**units: float) -> str:
    return format_time(NOW - timedelta(**units))


def cells(group: str, kind: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
    """Return the cells of an object by column."""
    resource = RESOURCES[GroupVersionKind(group, version, kind)]
    metadata = {"name": "thing", "creationTimestamp": ago(minutes=5), **fields.pop("metadata", {})}
    row = build_row(resource, {"metadata": metadata, **fields}, NOW)
    return {column["name"]: cell for column, cell in zip(list_columns(resource), row, strict=True)}


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=9, seconds=59), "9m59s"),
        (timedelta(minutes=10, seconds=59), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=7, hours=23), "7d23h"),
        (timedelta(days=8), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=800), "2y70d"),
        (timedelta(days=3650), "10y"),
    ],
)
def test_a_length_of_time_is_told_roughly(length: timedelta, text: str) -> None:
    assert format_duration(length) == text


@pytest.mark.parametrize("resource", list_builtin_resources(), ids=lambda resource: str(resource.gvk))
def test_an_empty_object_of_every_kind_has_a_cell_for_each_column(resource: Any) -> None:
    row = build_row(resource, {"metadata": {"name": "thing"}}, NOW)

    assert len(row) == len(list_columns(resource))


def running(name: str = "app", **status: Any) -> Object:
    return {"name": name, "ready": True, "restartCount": 0, "state": {"running": {}}, **status}


def waiting(reason: str) -> Object:
    return {"name": "app", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}}


def build_terminated_status(code: int, **more: Any) -> Object:
    return {"name": "app", "ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": code, **more}}}


@pytest.mark.parametrize(
    ("status", "ready", "word"),
    [
        ({"phase": "Pending"}, "0/1", "Pending"),
        ({"phase": "Running", "containerStatuses": [running()]}, "1/1", "Running"),
        ({"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff")]}, "0/1", "ImagePullBackOff"),
        (
            {"phase": "Succeeded", "containerStatuses": [build_terminated_status(0, reason="Completed")]},
            "0/1",
            "Completed",
        ),
        ({"phase": "Failed", "containerStatuses": [build_terminated_status(1, reason="Error")]}, "0/1", "Error"),
        ({"phase": "Failed", "containerStatuses": [build_terminated_status(3)]}, "0/1", "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [build_terminated_status(3, signal=9)]}, "0/1", "Signal:9"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/1", "Evicted"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "0/1",
            "SchedulingGated",
        ),
        ({"phase": "Pending", "initContainerStatuses": [waiting("PodInitializing")]}, "0/1", "Init:0/0"),
        ({"phase": "Pending", "initContainerStatuses": [waiting("ErrImagePull")]}, "0/1", "Init:ErrImagePull"),
        ({"phase": "Pending", "initContainerStatuses": [build_terminated_status(2)]}, "0/1", "Init:ExitCode:2"),
    ],
)
def test_the_status_of_a_pod_is_the_most_telling_word(status: Object, ready: str, word: str) -> None:
    row = cells("", "Pod", spec={"containers": [{"name": "app"}]}, status=status)

    assert (row["Ready"], row["Status"]) == (ready, word)


def test_a_pod_that_is_deleted_terminates() -> None:
    spec, status = {"containers": [{"name": "app"}]}, {"phase": "Running", "containerStatuses": [running()]}

    row = cells("", "Pod", metadata={"deletionTimestamp": ago(seconds=1)}, spec=spec, status=status)

    assert row["Status"] == "Terminating"


def test_restarts_say_when_the_last_one_was() -> None:
    last = {"terminated": {"finishedAt": ago(minutes=3)}}
    status = {"phase": "Running", "containerStatuses": [running(restartCount=2, lastState=last)], "podIP": "10.0.0.7"}

    row = cells("", "Pod", spec={"containers": [{"name": "app"}], "nodeName": "node-0"}, status=status)

    assert row["Restarts"] == "2 (3m ago)"
    assert (row["IP"], row["Node"], row["Nominated Node"]) == ("10.0.0.7", "node-0", "<none>")


SPEC = {
    "replicas": 3,
    "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    "template": {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}},
}


def test_workloads_show_how_far_they_are() -> None:
    status = {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}

    deployment = cells("apps", "Deployment", spec=SPEC, status=status)
    replica_set = cells("apps", "ReplicaSet", spec=SPEC, status=status)
    stateful_set = cells("apps", "StatefulSet", spec=SPEC, status=status)

    assert deployment == {
        "Name": "thing",
        "Ready": "2/3",
        "Up-to-date": 3,
        "Available": 1,
        "Age": "5m",
        "Containers": "a,b",
        "Images": "x:1,y:2",
        "Selector": "app=web,tier",
    }
    assert (replica_set["Desired"], replica_set["Current"], replica_set["Ready"]) == (3, 3, 2)
    assert stateful_set["Ready"] == "2/3"


@pytest.mark.parametrize(
    ("conditions", "metadata", "word"),
    [
        ([], {}, "Running"),
        (["Complete"], {}, "Complete"),
        (["Failed", "FailureTarget"], {}, "Failed"),
        (["Suspended"], {}, "Suspended"),
        (["Suspended"], {"deletionTimestamp": ago(seconds=1)}, "Terminating"),
    ],
)
def test_a_job_shows_its_state(conditions: list[str], metadata: Object, word: str) -> None:
    status = {
        "conditions": [{"type": name, "status": "True"} for name in conditions],
        "startTime": ago(minutes=4),
        "completionTime": ago(minutes=1),
        "succeeded": 2,
    }

    row = cells("batch", "Job", metadata=metadata, spec={"completions": 3}, status=status)

    assert (row["Status"], row["Completions"], row["Duration"]) == (word, "2/3", "3m")


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"type": "ClusterIP", "clusterIPs": ["10.96.0.9"]}, {}, ("10.96.0.9", "<none>")),
        ({"type": "ClusterIP", "clusterIPs": ["None"]}, {}, ("None", "<none>")),
        ({"type": "LoadBalancer", "clusterIPs": ["10.96.0.9"]}, {}, ("10.96.0.9", "<pending>")),
        (
            {"type": "LoadBalancer", "clusterIPs": ["10.96.0.9"]},
            {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
            ("10.96.0.9", "192.0.2.1"),
        ),
        ({"type": "ExternalName", "externalName": "example.com"}, {}, ("<none>", "example.com")),
    ],
)
def test_a_service_shows_where_it_is(spec: Object, status: Object, expected: tuple[str, str]) -> None:
    row = cells("", "Service", spec=spec, status=status)

    assert (row["Cluster-IP"], row["External-IP"]) == expected


def test_the_ports_of_a_service() -> None:
    ports = [{"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]

    row = cells("", "Service", spec={"type": "NodePort", "ports": ports, "selector": {"b": "2", "a": "1"}})

    assert (row["Port(s)"], row["Selector"]) == ("80/TCP,53:30053/UDP", "a=1,b=2")


def test_of_many_endpoints_the_first_are_shown() -> None:
    addresses = [{"ip": f"10.0.0.{number}"} for number in range(5)]

    endpoints = cells("", "Endpoints", subsets=[{"addresses": addresses, "ports": [{"port": 80}]}])
    slices = cells("discovery.k8s.io", "EndpointSlice", endpoints=[{"addresses": ["10.0.0.1"]}], ports=[{"port": 80}])

    assert endpoints["Endpoints"] == "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."
    assert (slices["Ports"], slices["Endpoints"]) == ("80", "10.0.0.1")
    assert cells("", "Endpoints")["Endpoints"] == "<none>"


def test_a_node_shows_whether_it_takes_pods() -> None:
    row = cells(
        "",
        "Node",
        metadata={"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": ""}},
        spec={"unschedulable": True},
        status={"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}},
    )

    assert (row["Status"], row["Roles"], row["Version"]) == ("Ready,SchedulingDisabled", "infra,worker", "v1")


def test_an_event_shows_the_same_in_both_forms() -> None:
    target = {"kind": "Pod", "name": "web", "fieldPath": "spec"}
    times = {"firstTimestamp": ago(minutes=9), "lastTimestamp": ago(minutes=1)}

    core = cells("", "Event", involvedObject=target, message=" hello ", source={"component": "me"}, count=4, **times)
    deprecated = {f"deprecated{name[0].upper()}{name[1:]}": value for name, value in times.items()}
    new = cells(
        "events.k8s.io",
        "Event",
        regarding=target,
        note=" hello ",
        deprecatedSource={"component": "me"},
        deprecatedCount=4,
        **deprecated,
    )

    assert core == new
    assert (core["Last Seen"], core["Object"], core["Message"], core["First Seen"], core["Count"]) == (
        "60s",
        "pod/web",
        "hello",
        "9m",
        4,
    )


def test_an_autoscaler_shows_its_targets() -> None:
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
        {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
        {"type": "External", "external": {"target": {"value": "5"}}},
    ]
    current = [{"type": "Resource", "resource": {"current": {"averageUtilization": 20}}}]

    row = cells(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "v2",
        spec={"metrics": metrics, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
        status={"currentMetrics": current},
    )

    assert row["Targets"] == "cpu: 20%/80%, <unknown>/10 + 1 more..."
    assert row["Reference"] == "Deployment/web"


def test_a_binding_shows_who_is_bound() -> None:
    subjects = [
        {"kind": "User", "name": "ann"},
        {"kind": "Group", "name": "devs"},
        {"kind": "ServiceAccount", "namespace": "ci", "name": "bot"},
    ]

    row = cells("rbac.authorization.k8s.io", "RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=subjects)

    assert (row["Role"], row["Users"], row["Groups"], row["ServiceAccounts"]) == (
        "Role/r",
        "ann",
        "devs",
        "ci/bot",
    )


DOCUMENT = {
    "a": {"b.c": 1, "list": [{"t": "x", "n": 1}, {"t": "y", "n": 2}]},
    "s": "text",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".s", "text"),
        ("{.s}", "text"),
        ("$.s", "text"),
        (".a['b.c']", 1),
        (r".a.b\.c", 1),
        (".a.list[1].n", 2),
        (".a.list[-1].n", 2),
        (".a.list[7].n", None),
        (".a.list[*].t", "x"),
        (".a.list[?(@.t=='y')].n", 2),
        ('.a.list[?(@.t == "y")].n', 2),
        (".a.list[?(@.n>1)].t", "y"),
        (".a.list[?(@.t!='x')].t", "y"),
        (".a.list[?(@.none=='x')].t", None),
        (".s.deeper", None),
        (".a..b", None),
        ("nonsense[", None),
    ],
)
def test_a_json_path_finds_its_first_value(path: str, value: Any) -> None:
    assert find_value(DOCUMENT, path) == value


def test_a_custom_resource_shows_what_its_definition_says(api: ApiServer, webapps: Object) -> None:
    created = api.create(WEBAPP, webapp(replicas=3))
    resource = api.resources.get_by_kind(WEBAPP)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    fresh, later = (
        build_row(resource, created, NOW),
        build_row(resource, {**created, **ready}, NOW + timedelta(minutes=2)),
    )

    assert [column["name"] for column in list_columns(resource)] == ["Name", "Ready", "Replicas", "Image", "Age"]
    assert fresh == ["shop", None, 3, "shop:1", "0s"]
    assert later == ["shop", "True", 3, "shop:1", "2m"]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string", {"a": 1}, '{"a":1}'),
        ("string", 5, "5"),
        ("integer", 2.0, 2),
        ("integer", "two", None),
        ("number", 2, 2.0),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("date", "yesterday", "<invalid>"),
        ("date", 7, None),
    ],
)
def test_a_value_of_another_type_than_its_column(api: ApiServer, kind: str, value: Any, cell: Any) -> None:
    column = {"name": "Value", "type": kind, "jsonPath": ".status.value"}
    api.create(DEFINITION, webapp_definition(additionalPrinterColumns=[column]))

    row = build_row(api.resources.get_by_kind(WEBAPP), {"metadata": {"name": "x"}, "status": {"value": value}}, NOW)

    assert row == ["x", cell]


def test_a_table_carries_as_much_of_each_object_as_is_wanted(ask: RequestClient) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    ask("POST", path, config_map(a="1"))

    rows = {
        wanted: ask("GET", f"{path}?includeObject={wanted}", headers=TABLE).body["rows"][0]["object"]
        for wanted in ("None", "Metadata", "Object")
    }

    assert rows["None"] is None
    assert set(rows["Metadata"]) == {"kind", "apiVersion", "metadata"}
    assert rows["Object"]["data"] == {"a": "1"}


def test_a_table_says_where_the_list_stands(ask: RequestClient, api: ApiServer) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    for name in "ab":
        ask("POST", path, config_map(name))

    table = ask("GET", f"{path}?limit=1", headers=TABLE).body

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"] == str(api.storage.revision)
    assert table["metadata"]["remainingItemCount"] == 1
    assert [row["cells"] for row in table["rows"]] == [["a", 0, "0s"]]
