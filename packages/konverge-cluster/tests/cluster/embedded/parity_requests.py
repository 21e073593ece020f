"""Requests that the embedded and the real server must answer alike.

Each sequence is short. The requests do not change objects of the controllers, or are dry runs, so that only the API
server answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from konverge.kube import Object
from tests.cluster.embedded.objects import webapp_definition, workload
from tests.cluster.embedded.request_client import APPLY, JSON_PATCH, MERGE, STRATEGIC

JSON = "application/json"
GROUP = "compare.konverge.dev"


@dataclass(frozen=True)
class ParityRequest:
    """One request; ``{n}`` in the path is the namespace."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON


def build_definition() -> Object:
    """Return the definition of the custom resources in the requests: webapps of another group."""
    renamed: Object = json.loads(json.dumps(webapp_definition()).replace("demo.konverge.dev", GROUP))
    return renamed


CORE, APPS = "/api/v1/namespaces/{n}", "/apis/apps/v1/namespaces/{n}"
BATCH, RBAC = "/apis/batch/v1/namespaces/{n}", "/apis/rbac.authorization.k8s.io/v1/namespaces/{n}"
NETWORKING = "/apis/networking.k8s.io/v1"
WEBAPPS = f"/apis/{GROUP}/v1/namespaces/{{n}}/webapps"
TRY = "?dryRun=All"


def create_object(path: str, query: str = TRY, name: str = "x", **body: Any) -> list[ParityRequest]:
    """Create one object in a dry run."""
    return [ParityRequest("POST", path + query, {"metadata": {"name": name}, **body})]


def create_config_map(**metadata: Any) -> list[ParityRequest]:
    """Create a ConfigMap with that metadata in a dry run."""
    return [ParityRequest("POST", f"{CORE}/configmaps{TRY}", {"metadata": metadata})]


def create_deployment_of_pods(**spec: Any) -> list[ParityRequest]:
    """Create a Deployment of such pods in a dry run."""
    spec.setdefault("containers", [{"name": "app", "image": "konverge.test/app:1"}])
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    return create_object(f"{APPS}/deployments", spec=workload(template=template))


def create_deployment_of_container(**fields: Any) -> list[ParityRequest]:
    """Create a Deployment with one container of those fields in a dry run."""
    volumes = [{"name": "data", "emptyDir": {}}]
    return create_deployment_of_pods(
        containers=[{"name": "app", "image": "konverge.test/app:1", **fields}], volumes=volumes
    )


def create_deployment(**spec: Any) -> list[ParityRequest]:
    return create_object(f"{APPS}/deployments", spec=workload(**spec))


def create_limit_range(**limits: Any) -> list[ParityRequest]:
    return create_object(f"{CORE}/limitranges", spec={"limits": [limits]})


def labeled_pods() -> dict[str, Any]:
    """Return a template of pods with one label."""
    pods = {"containers": [{"name": "app", "image": "konverge.test/app:1"}]}
    return {"metadata": {"labels": {"app": "web"}}, "spec": pods}


def create_service(**spec: Any) -> list[ParityRequest]:
    return create_object(f"{CORE}/services", spec={"ports": [{"port": 80}], **spec})


def create_webapp(query: str = TRY, **spec: Any) -> list[ParityRequest]:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "WebApp",
        "metadata": {"name": "x"},
        "spec": {"image": "shop:1", **spec},
    }
    return [ParityRequest("POST", WEBAPPS + query, body)]


def build_config_map_sequence(name: str, *questions: ParityRequest) -> list[ParityRequest]:
    """Return the requests about one ConfigMap, from its creation to its deletion."""
    path = f"{CORE}/configmaps"
    born = ParityRequest("POST", path, {"metadata": {"name": name}, "data": {"a": "1"}})
    return [born, *questions, ParityRequest("DELETE", f"{path}/{name}")]


def patch_config_map(name: str, patch: Any, content_type: str = MERGE, query: str = "") -> ParityRequest:
    return ParityRequest("PATCH", f"{CORE}/configmaps/{name}{query}", patch, content_type)


def apply_config_map(name: str, query: str = "?fieldManager=me", **body: Any) -> ParityRequest:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **body}
    return patch_config_map(name, whole, APPLY, query)


def build_webapp_sequence(name: str, *questions: ParityRequest) -> list[ParityRequest]:
    """Return the requests about one custom resource, from its creation to its deletion."""
    body = {"apiVersion": f"{GROUP}/v1", "kind": "WebApp", "metadata": {"name": name}, "spec": {"image": "shop:1"}}
    return [ParityRequest("POST", WEBAPPS, body), *questions, ParityRequest("DELETE", f"{WEBAPPS}/{name}")]


def patch_webapp(name: str, patch: Any, content_type: str = MERGE, query: str = "") -> ParityRequest:
    return ParityRequest("PATCH", f"{WEBAPPS}/{name}{query}", patch, content_type)


def apply_webapp(name: str, query: str = "?fieldManager=me&force=true", **spec: Any) -> ParityRequest:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "WebApp",
        "metadata": {"name": name},
        "spec": {"image": "shop:1", **spec},
    }
    return patch_webapp(name, body, APPLY, query)


_WRONG_SPECS: tuple[Object, ...] = (
    {"replicas": "x"},
    {"replicas": 1.5},
    {"replicas": 99999999999},
    {"paused": 1},
    {"selector": []},
    {"template": {"spec": {"containers": {}}}},
    {"template": {"spec": {"containers": ["x"]}}},
    {"template": {"spec": {"containers": [{"ports": [{"containerPort": "x"}]}]}}},
    {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "much"}}}]}}},
    {"template": {"metadata": {"labels": ["x"]}}},
    {"template": {"metadata": {"creationTimestamp": "now"}}},
)


SEQUENCES: dict[str, list[ParityRequest]] = {
    # Metadata
    "a name of the wrong form": create_config_map(name="X_"),
    "no name": create_config_map(),
    "a name of the wrong type": create_config_map(name=1),
    "labels": create_config_map(name="x", labels={"/x": "", "x/": "", "a/b/c": "", "UP/x": "", "a": "b+"}),
    "annotations": create_config_map(name="x", annotations={"a+": "", "UPPER/x": ""}),
    "finalizers": create_config_map(name="x", finalizers=["a b", "plain"]),
    "owners": create_config_map(name="x", ownerReferences=[{}]),
    "two controllers": create_config_map(
        name="x",
        ownerReferences=[
            {"apiVersion": "v1", "kind": "A", "name": name, "uid": name, "controller": True} for name in ("a", "b")
        ],
    ),
    "a deletion that the client dates": create_config_map(
        name="x", deletionTimestamp="2020-01-01T00:00:00Z", finalizers=["a/b"]
    ),
    "another namespace": create_config_map(name="x", namespace="other"),
    "no such namespace": [ParityRequest("POST", "/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "x"}})],
    "a service name with dots": create_service()
    + create_object(f"{CORE}/services", name="a.b", spec={"ports": [{"port": 80}]}),
    "a role name with a colon": create_object(
        f"{RBAC}/roles", name="system:x", rules=[{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    ),
    # Pods
    "no containers": create_deployment_of_pods(containers=[]),
    "an empty container": create_deployment_of_pods(containers=[{}]),
    "containers of one name": create_deployment_of_pods(
        containers=[{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]
    ),
    "ports": create_deployment_of_container(
        ports=[
            {},
            {"containerPort": 99999, "protocol": "ICMP"},
            {"containerPort": 80, "name": "X"},
            {"containerPort": 81, "name": "dup"},
            {"containerPort": 82, "name": "dup"},
        ]
    ),
    "environment": create_deployment_of_container(
        env=[
            {},
            {"name": "a=b"},
            {"name": "x", "value": "y", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "z", "valueFrom": {}},
            {"name": "s", "valueFrom": {"secretKeyRef": {"name": "x"}}},
        ],
        envFrom=[{}],
    ),
    "mounts": create_deployment_of_container(
        volumeMounts=[{"name": "none", "mountPath": "/x"}, {"name": "data"}, {"name": "data", "mountPath": "/y"}]
    ),
    "probes": create_deployment_of_container(
        livenessProbe={},
        readinessProbe={"httpGet": {"port": 0}},
        startupProbe={"tcpSocket": {"port": "named"}, "exec": {"command": []}, "periodSeconds": -1},
    ),
    "volumes": create_deployment_of_pods(
        volumes=[
            {"name": "v", "emptyDir": {}},
            {"name": "v", "emptyDir": {}},
            {"name": "Z_", "emptyDir": {}, "secret": {"secretName": "x"}},
            {"name": "cm", "configMap": {}},
            {"name": "sec", "secret": {}},
        ]
    ),
    "policies of a pod": create_deployment_of_pods(
        restartPolicy="Sometimes", dnsPolicy="None of these", activeDeadlineSeconds=0
    ),
    "zeros, quantities and images": create_deployment_of_pods(
        containers=[
            {
                "name": "a",
                "image": "x:latest",
                "tty": False,
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
            },
            {"name": "b", "image": "registry:5000/x@sha256:aaaa"},
        ],
        terminationGracePeriodSeconds=0,
        automountServiceAccountToken=False,
        hostNetwork=False,
        securityContext={"runAsUser": 0},
    ),
    "a pod": create_object(f"{CORE}/pods", spec={"containers": [{"name": "app", "image": "konverge.test/app:1"}]}),
    # Workloads
    "an empty deployment": create_object(f"{APPS}/deployments", spec={"replicas": -1}),
    "numbers of a deployment": create_deployment(minReadySeconds=-1, revisionHistoryLimit=-1),
    "no surge and none unavailable": create_deployment(
        strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
    ),
    "a surge of some": create_deployment(strategy={"rollingUpdate": {"maxSurge": "some"}}),
    "recreating in steps": create_deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    "an empty selector": create_deployment(selector={}),
    "a selector that cannot be": create_deployment(
        selector={
            "matchExpressions": [{"key": "b", "operator": "In"}, {"key": "c", "operator": "Exists", "values": ["x"]}]
        }
    ),
    "a deployment": create_deployment(replicas=0, paused=False),
    "a daemon set": create_object(f"{APPS}/daemonsets", spec=workload()),
    "a stateful set": create_object(f"{APPS}/statefulsets", spec=workload(serviceName="x")),
    "a stateful set of another policy": create_object(
        f"{APPS}/statefulsets", spec=workload(podManagementPolicy="Wild")
    ),
    "a job": create_object(
        f"{BATCH}/jobs",
        spec={"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}},
    ),
    "a job that restarts": create_object(
        f"{BATCH}/jobs", spec={"template": {"spec": {"containers": [{"name": "a", "image": "x"}]}}}
    ),
    "wrong types": [question for spec in _WRONG_SPECS for question in create_deployment(**spec)],
    # Services
    "no ports": create_service(ports=[]),
    "wrong ports": create_service(
        ports=[{"name": "a", "port": 0}, {"name": "a", "port": 1, "protocol": "ICMP", "targetPort": "a b"}]
    ),
    "a type that is none": create_service(type="Magic"),
    "a node port where none may be": create_service(ports=[{"port": 80, "nodePort": 30080}]),
    "an external name": create_service(type="ExternalName", externalName="example.com", ports=[]),
    "an external name of nothing": create_service(type="ExternalName"),
    "an address of another network": create_service(clusterIP="192.0.2.1"),
    "an address that is none": create_service(clusterIP="none"),
    "a headless service": create_service(clusterIP="None", selector={"a": "b"}, ports=[]),
    "a node port": create_service(type="NodePort", sessionAffinity="ClientIP"),
    # Configuration
    "keys": create_object(f"{CORE}/configmaps", data={"bad key": "x", "..": "y"}, binaryData={"bad key": "eA=="}),
    "empty values": create_object(f"{CORE}/configmaps", data={"a": None, "b": ""}),
    "nothing": create_object(f"{CORE}/configmaps", data={}),
    "unknown fields": create_object(f"{CORE}/configmaps", data={"a": "1"}, colour="red"),
    "unknown fields, refused": create_object(
        f"{CORE}/configmaps", f"{TRY}&fieldValidation=Strict", colour="red", size=1
    ),
    "typed secrets": [
        question
        for kind in ("tls", "dockerconfigjson", "basic-auth", "ssh-auth", "service-account-token")
        for question in create_object(f"{CORE}/secrets", type=f"kubernetes.io/{kind}")
    ],
    "typed secrets with empty values": [
        question
        for kind, key in (("tls", "tls.crt"), ("basic-auth", "password"), ("ssh-auth", "ssh-privatekey"))
        for question in create_object(f"{CORE}/secrets", type=f"kubernetes.io/{kind}", data={key: ""})
    ],
    "data of a secret": [
        question
        for data in ({"a": "!!!"}, {"a": 1}, {"a": None}, {"a b": "eA=="})
        for question in create_object(f"{CORE}/secrets", data=data)
    ],
    "text of a secret": create_object(f"{CORE}/secrets", stringData={"a": "b"}, data={"a": "eA==", "c": "eA=="}),
    # The smaller kinds
    "a budget of both limits": create_object(
        "/apis/policy/v1/namespaces/{n}/poddisruptionbudgets", spec={"minAvailable": -1}
    ),
    "an autoscaler of nothing": create_object(
        "/apis/autoscaling/v2/namespaces/{n}/horizontalpodautoscalers", spec={"scaleTargetRef": {}}
    ),
    "a claim of nothing": create_object(f"{CORE}/persistentvolumeclaims", spec={}),
    "a claim": create_object(
        f"{CORE}/persistentvolumeclaims",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
    ),
    "an ingress of nothing": create_object("/apis/networking.k8s.io/v1/namespaces/{n}/ingresses", spec={}),
    "a role of nothing": create_object(f"{RBAC}/roles", rules=[{}]),
    "a binding of nothing": create_object(f"{RBAC}/rolebindings", subjects=[]),
    "a lease": create_object(
        "/apis/coordination.k8s.io/v1/namespaces/{n}/leases", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}
    ),
    "a schedule": create_object(
        f"{BATCH}/cronjobs",
        spec={
            "schedule": "daily",
            "concurrencyPolicy": "Maybe",
            "jobTemplate": {
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}}
            },
        },
    ),
    "an event in both forms": [
        ParityRequest(
            "POST",
            f"{CORE}/events",
            {
                "metadata": {"name": "e", "namespace": "{n}"},
                "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{n}"},
                "reason": "R",
                "message": "M",
                "type": "Normal",
                "source": {"component": "c"},
                "count": 2,
            },
        ),
        ParityRequest("GET", "/apis/events.k8s.io/v1/namespaces/{n}/events/e"),
        ParityRequest("DELETE", f"{CORE}/events/e"),
    ],
    # Requests
    "paths that are none": [
        ParityRequest("GET", f"{CORE}/foos"),
        ParityRequest("POST", f"{CORE}/configmaps/x", {}),
        ParityRequest("PUT", f"{CORE}/configmaps", {}),
        ParityRequest("GET", f"{CORE}/configmaps/none"),
        ParityRequest("DELETE", f"{CORE}/configmaps/none"),
        ParityRequest("PUT", f"{CORE}/configmaps/none", {"metadata": {"name": "none"}}),
        ParityRequest("PUT", f"{CORE}/configmaps/none", {"metadata": {"name": "other"}}),
        ParityRequest("PUT", f"{CORE}/configmaps/none", {}),
        ParityRequest("POST", f"{CORE}/configmaps", b"x", "text/plain"),
    ],
    "queries that are none": [
        ParityRequest("GET", f"{CORE}/configmaps?limit=many"),
        ParityRequest("GET", f"{CORE}/configmaps?labelSelector=a%3D%3D%3D"),
        ParityRequest("GET", f"{CORE}/configmaps?labelSelector=a%20in%20b"),
        ParityRequest("GET", f"{CORE}/configmaps?fieldSelector=spec.x%3D1"),
        ParityRequest("GET", f"{CORE}/pods?fieldSelector=spec.x%3D1"),
        ParityRequest("GET", f"{CORE}/configmaps?resourceVersion=new"),
        ParityRequest("GET", f"{CORE}/configmaps?resourceVersionMatch=Exact"),
        ParityRequest("DELETE", f"{CORE}/configmaps/none?propagationPolicy=Later"),
        ParityRequest("GET", f"{CORE}/configmaps?watch=1&sendInitialEvents=true"),
        ParityRequest("GET", f"{CORE}/configmaps?watch=1&resourceVersionMatch=NotOlderThan"),
    ],
    "merge patches": build_config_map_sequence(
        "merged",
        patch_config_map("merged", {"data": {"a": None, "b": "2"}}),
        patch_config_map("merged", {"metadata": {"resourceVersion": "1"}}),
        patch_config_map("merged", {"metadata": {"name": "other"}}),
        patch_config_map("merged", {"metadata": {"generation": 7, "creationTimestamp": None}}),
        patch_config_map("merged", {"colour": "red"}),
        patch_config_map("merged", {}, query="?force=true"),
        patch_config_map("merged", {}, query="?fieldValidation=Sometimes"),
        patch_config_map("merged", {}, query="?dryRun=Some"),
        patch_config_map("merged", {}, query=f"?fieldManager={'m' * 129}"),
        patch_config_map("merged", {}, "text/plain"),
    ),
    "json patches": build_config_map_sequence(
        "json",
        patch_config_map("json", [{"op": "replace", "path": "/data/new", "value": "x"}], JSON_PATCH),
        patch_config_map("json", [{"op": "remove", "path": "/data/new"}], JSON_PATCH),
        patch_config_map("json", [{"op": "remove", "path": "/data/new"}], JSON_PATCH),
        patch_config_map("json", [{"op": "test", "path": "/data/a", "value": "2"}], JSON_PATCH),
        patch_config_map("json", [{"op": "test", "path": "/data/none", "value": None}], JSON_PATCH),
        patch_config_map("json", [{"op": "add", "path": "/none/a", "value": "2"}], JSON_PATCH),
        patch_config_map("json", [{"op": "copy", "from": "/data/a", "path": "/data/b"}], JSON_PATCH),
        patch_config_map("json", [{"op": "move", "from": "/data/a", "path": "/data/c"}], JSON_PATCH),
        patch_config_map("json", [{"op": "add", "path": "/data/d"}], JSON_PATCH),
    ),
    "strategic patches": build_config_map_sequence(
        "strategic",
        patch_config_map("strategic", {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}, STRATEGIC),
        patch_config_map("strategic", {"metadata": {"finalizers": ["a.b/e", "a.b/d", "a.b/f"]}}, STRATEGIC),
        patch_config_map(
            "strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c", "a.b/e"]}}, STRATEGIC
        ),
        patch_config_map(
            "strategic",
            {"metadata": {"$setElementOrder/finalizers": ["a.b/f", "x.y/z"], "finalizers": ["x.y/z"]}},
            STRATEGIC,
        ),
        patch_config_map("strategic", {"metadata": {"finalizers": None}}, STRATEGIC),
        patch_config_map("strategic", {"data": {"b": "2"}}, STRATEGIC),
    ),
    "applies": build_config_map_sequence(
        "applied",
        apply_config_map("applied", data={"a": "2"}),
        apply_config_map("applied", "?fieldManager=me&force=true", data={"a": "2", "b": "3"}),
        apply_config_map("applied", "?fieldManager=me&force=true", data={"a": "2", "b": "3"}),
        apply_config_map("applied", "?fieldManager=other", data={"b": "3"}),
        apply_config_map("applied", data={"a": "2"}),
        apply_config_map("applied", "", data={}),
        apply_config_map("applied", metadata={"name": "other"}),
        apply_config_map("applied", kind="Secret"),
        apply_config_map("applied", metadata={"name": "applied", "resourceVersion": "1"}),
        apply_config_map("applied", metadata={"name": "applied", "managedFields": []}),
        apply_config_map("unborn", metadata={"name": "unborn", "uid": "1234"}),
        apply_config_map("unborn", "?fieldManager=me&dryRun=All", data={"a": "1"}),
    ),
    "guards": build_config_map_sequence(
        "guarded",
        ParityRequest("PUT", f"{CORE}/configmaps/guarded", {"metadata": {"name": "guarded", "resourceVersion": "1"}}),
        ParityRequest("DELETE", f"{CORE}/configmaps/guarded", {"preconditions": {"uid": "other"}}),
        ParityRequest("DELETE", f"{CORE}/configmaps/guarded?dryRun=All"),
    ),
    "immutable configuration": build_config_map_sequence(
        "immutable",
        patch_config_map("immutable", {"immutable": True}),
        patch_config_map("immutable", {"data": {"a": "2"}, "immutable": None}),
        patch_config_map("immutable", {"metadata": {"labels": {"a": "b"}}}),
    ),
    "a finalizer": build_config_map_sequence(
        "held",
        patch_config_map("held", {"metadata": {"finalizers": ["example.com/hold"]}}),
        ParityRequest("DELETE", f"{CORE}/configmaps/held"),
        patch_config_map("held", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
        ParityRequest("DELETE", f"{CORE}/configmaps/held?propagationPolicy=Background"),
        patch_config_map("held", {"metadata": {"finalizers": None}}),
    ),
    # Custom resources
    "a custom resource": create_webapp(
        replicas=2, note=None, ports=[{"name": "http", "port": 80}], extra={"a": {"b": None}}
    ),
    "required": create_webapp(image=None),
    "texts": create_webapp(image="ab")
    + create_webapp(image="Shop")
    + create_webapp(image=7)
    + create_webapp(size="huge")
    + create_webapp(size=1),
    "numbers": create_webapp(replicas="three")
    + create_webapp(replicas=-1)
    + create_webapp(replicas=11)
    + create_webapp(replicas=1.5)
    + create_webapp(ratio=0.3),
    "a number out of its format": create_webapp(replicas=99999999999),
    "lists": create_webapp(hosts=["a", "a"])
    + create_webapp(hosts=["a", 1, None])
    + create_webapp(ports=[{"name": n} for n in "abcd"]),
    "keyed lists": create_webapp(ports=[{"port": 1}, {"name": "a"}, {"name": "a"}])
    + create_webapp(ports=[{"name": "a", "port": True}]),
    "mappings": create_webapp(limits={})
    + create_webapp(limits={"a": "b"})
    + create_webapp(limits=[1])
    + create_webapp(extra="x"),
    "embedded objects": create_webapp(template={"a": 1})
    + create_webapp(template={"apiVersion": "v1", "kind": "X", "metadata": {"name": "Y_"}}),
    "one of two": create_webapp(source={"git": "a", "oci": "b"}) + create_webapp(source={}),
    "a date": create_webapp(since="yesterday") + create_webapp(since="2026-01-31T08:00:00Z"),
    "nulls": create_webapp(size=None, replicas=None, hosts=None),
    "unknown fields of a custom resource": create_webapp(unknown=1, ports=[{"name": "a", "extra": 1}])
    + create_webapp(f"{TRY}&fieldValidation=Strict", unknown=1, ports=[{"name": "a", "extra": 1}]),
    "another kind": [
        ParityRequest("POST", WEBAPPS + TRY, {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": {"name": "x"}})
    ],
    "the life of a custom resource": build_webapp_sequence(
        "living",
        patch_webapp("living", {"spec": {"replicas": 3}, "status": {"replicas": 9}}),
        ParityRequest(
            "PATCH",
            f"{WEBAPPS}/living/status",
            {
                "status": {"replicas": 2, "selector": "a=b"},
                "spec": {"replicas": 7},
                "metadata": {"labels": {"a": "b"}},
            },
            MERGE,
        ),
        ParityRequest("GET", f"{WEBAPPS}/living/scale"),
        # With its type: without, the real server also forgets who owns the replicas, and the embedded one does not.
        ParityRequest(
            "PUT",
            f"{WEBAPPS}/living/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "living"},
                "spec": {"replicas": 5},
            },
        ),
        ParityRequest("PATCH", f"{WEBAPPS}/living/scale", {"spec": {"replicas": -1}}, MERGE),
        ParityRequest("GET", f"{WEBAPPS}/living"),
        ParityRequest(
            "PUT",
            f"{WEBAPPS}/living",
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "WebApp",
                "metadata": {"name": "living"},
                "spec": {"image": "shop:1"},
            },
        ),
        patch_webapp("living", {"spec": {"size": "huge"}}),
        patch_webapp("living", {}, STRATEGIC),
    ),
    "applied custom resources": build_webapp_sequence(
        "applied",
        apply_webapp("applied", "?fieldManager=me", image="shop:2"),
        apply_webapp("applied", ports=[{"name": "a", "port": 80}, {"name": "b", "port": "http"}], hosts=["a", "b"]),
        apply_webapp("applied", ports=[{"name": "b", "port": "grpc"}], hosts=["b"]),
        apply_webapp("applied", "?fieldManager=other", ports=[{"name": "c"}], hosts=["c"]),
        apply_webapp("applied"),
        apply_webapp("applied", replicas=None),
    ),
    "quotas": create_object(
        f"{CORE}/resourcequotas", spec={"hard": {"pods": "10", "requests.cpu": "1000m", "count/a.b": 1}}
    )
    + create_object(f"{CORE}/resourcequotas")
    + create_object(
        f"{CORE}/resourcequotas", spec={"hard": {"pods": "1"}, "scopes": ["NotBestEffort"]}, status={"hard": {}}
    )
    + create_object(f"{CORE}/resourcequotas", spec={"hard": {"pods": "x"}})
    + create_object(
        f"{CORE}/resourcequotas", spec={"hard": {"pods": "1.5", "secrets": "-1", "foo": "1", "example.com/g": 1}}
    )
    + create_object(f"{CORE}/resourcequotas", spec={"scopes": ["Nope", "BestEffort", "NotBestEffort"]})
    + [ParityRequest("PUT", f"{CORE}/resourcequotas/none", {"metadata": {"name": "none"}})],
    "limits of a namespace": create_limit_range()
    + create_limit_range(max={"cpu": "2"}, default={"cpu": "1"})
    + create_limit_range(type="Container", max={"cpu": "2"}, default={"cpu": "1"})
    + create_limit_range(type="Container", max={"cpu": "2"}, min={"cpu": "3"})
    + create_limit_range(type="Container", max={"cpu": "2"}, default={"cpu": "3"})
    + create_limit_range(type="Container", default={"cpu": "2"}, defaultRequest={"cpu": "3"})
    + create_limit_range(type="Container", min={"cpu": "2"}, maxLimitRequestRatio={"cpu": "0.5"})
    + create_limit_range(type="Pod", default={"cpu": "2"})
    + create_object(f"{CORE}/limitranges", spec={"limits": [{"type": "Pod"}, {"type": "Pod"}]})
    + create_object(f"{CORE}/limitranges", spec={}),
    "pod templates": create_object(f"{CORE}/podtemplates", template=labeled_pods())
    + create_object(f"{CORE}/podtemplates", template={"spec": {"containers": []}})
    + create_object(f"{CORE}/podtemplates"),
    "replication controllers": create_object(f"{CORE}/replicationcontrollers", spec={"template": labeled_pods()})
    + create_object(f"{CORE}/replicationcontrollers", spec={"selector": {"x": "y"}, "template": labeled_pods()})
    + create_object(f"{CORE}/replicationcontrollers", spec={"replicas": -1, "template": labeled_pods()})
    + create_object(f"{CORE}/replicationcontrollers", spec={}),
    "classes of Ingresses": create_object(f"{NETWORKING}/ingressclasses", spec={"controller": "example.com/a"})
    + create_object(f"{NETWORKING}/ingressclasses"),
    "applied quotas": [
        ParityRequest(
            "PATCH",
            f"{CORE}/resourcequotas/applied{TRY}&fieldManager=me",
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "applied"},
                "spec": {"hard": {"cpu": "1"}},
            },
            APPLY,
        ),
    ],
}
