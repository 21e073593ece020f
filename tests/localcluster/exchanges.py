"""Questions that the embedded and the real server must answer alike.

Each is a short story of requests. They leave the objects of the controllers alone, or are dry runs, so that nothing but
the API server answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from konverge.kube import Object
from tests.localcluster.asking import APPLY, JSON_PATCH, MERGE, STRATEGIC
from tests.localcluster.objects import webapp_definition, workload

JSON = "application/json"
GROUP = "compare.konverge.dev"


@dataclass(frozen=True)
class Question:
    """One request; ``{n}`` in the path is the namespace."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON


def definition() -> Object:
    """The definition of the custom resources that the questions are about: webapps under another group."""
    renamed: Object = json.loads(json.dumps(webapp_definition()).replace("demo.konverge.dev", GROUP))
    return renamed


CORE, APPS = "/api/v1/namespaces/{n}", "/apis/apps/v1/namespaces/{n}"
BATCH, RBAC = "/apis/batch/v1/namespaces/{n}", "/apis/rbac.authorization.k8s.io/v1/namespaces/{n}"
WEBAPPS = f"/apis/{GROUP}/v1/namespaces/{{n}}/webapps"
TRY = "?dryRun=All"


def new(path: str, query: str = TRY, name: str = "x", **body: Any) -> list[Question]:
    """Create one object, only to try."""
    return [Question("POST", path + query, {"metadata": {"name": name}, **body})]


def named(**metadata: Any) -> list[Question]:
    """Create a ConfigMap with that metadata, only to try."""
    return [Question("POST", f"{CORE}/configmaps{TRY}", {"metadata": metadata})]


def pods(**spec: Any) -> list[Question]:
    """Create a Deployment of such pods, only to try."""
    spec.setdefault("containers", [{"name": "app", "image": "konverge.test/app:1"}])
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    return new(f"{APPS}/deployments", spec=workload(template=template))


def container(**fields: Any) -> list[Question]:
    """The same with one container of those fields."""
    volumes = [{"name": "data", "emptyDir": {}}]
    return pods(containers=[{"name": "app", "image": "konverge.test/app:1", **fields}], volumes=volumes)


def deployment(**spec: Any) -> list[Question]:
    return new(f"{APPS}/deployments", spec=workload(**spec))


def service(**spec: Any) -> list[Question]:
    return new(f"{CORE}/services", spec={"ports": [{"port": 80}], **spec})


def webapp(query: str = TRY, **spec: Any) -> list[Question]:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "WebApp",
        "metadata": {"name": "x"},
        "spec": {"image": "shop:1", **spec},
    }
    return [Question("POST", WEBAPPS + query, body)]


def story(name: str, *questions: Question) -> list[Question]:
    """What is asked of one ConfigMap, from its creation to its end."""
    path = f"{CORE}/configmaps"
    born = Question("POST", path, {"metadata": {"name": name}, "data": {"a": "1"}})
    return [born, *questions, Question("DELETE", f"{path}/{name}")]


def patched(name: str, patch: Any, content_type: str = MERGE, query: str = "") -> Question:
    return Question("PATCH", f"{CORE}/configmaps/{name}{query}", patch, content_type)


def applied(name: str, query: str = "?fieldManager=me", **body: Any) -> Question:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **body}
    return patched(name, whole, APPLY, query)


def shop(name: str, *questions: Question) -> list[Question]:
    """What is asked of one custom resource, from its creation to its end."""
    body = {"apiVersion": f"{GROUP}/v1", "kind": "WebApp", "metadata": {"name": name}, "spec": {"image": "shop:1"}}
    return [Question("POST", WEBAPPS, body), *questions, Question("DELETE", f"{WEBAPPS}/{name}")]


def of_shop(name: str, patch: Any, content_type: str = MERGE, query: str = "") -> Question:
    return Question("PATCH", f"{WEBAPPS}/{name}{query}", patch, content_type)


def apply_shop(name: str, query: str = "?fieldManager=me&force=true", **spec: Any) -> Question:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "WebApp",
        "metadata": {"name": name},
        "spec": {"image": "shop:1", **spec},
    }
    return of_shop(name, body, APPLY, query)


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


STORIES: dict[str, list[Question]] = {
    # Metadata
    "a name of the wrong form": named(name="X_"),
    "no name": named(),
    "a name of the wrong type": named(name=1),
    "labels": named(name="x", labels={"/x": "", "x/": "", "a/b/c": "", "UP/x": "", "a": "b+"}),
    "annotations": named(name="x", annotations={"a+": "", "UPPER/x": ""}),
    "finalizers": named(name="x", finalizers=["a b", "plain"]),
    "owners": named(name="x", ownerReferences=[{}]),
    "two controllers": named(
        name="x",
        ownerReferences=[
            {"apiVersion": "v1", "kind": "A", "name": name, "uid": name, "controller": True} for name in ("a", "b")
        ],
    ),
    "a deletion that the client dates": named(name="x", deletionTimestamp="2020-01-01T00:00:00Z", finalizers=["a/b"]),
    "another namespace": named(name="x", namespace="other"),
    "no such namespace": [Question("POST", "/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "x"}})],
    "a service name with dots": service() + new(f"{CORE}/services", name="a.b", spec={"ports": [{"port": 80}]}),
    "a role name with a colon": new(
        f"{RBAC}/roles", name="system:x", rules=[{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    ),
    # Pods
    "no containers": pods(containers=[]),
    "an empty container": pods(containers=[{}]),
    "containers of one name": pods(containers=[{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]),
    "ports": container(
        ports=[
            {},
            {"containerPort": 99999, "protocol": "ICMP"},
            {"containerPort": 80, "name": "X"},
            {"containerPort": 81, "name": "dup"},
            {"containerPort": 82, "name": "dup"},
        ]
    ),
    "environment": container(
        env=[
            {},
            {"name": "a=b"},
            {"name": "x", "value": "y", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "z", "valueFrom": {}},
            {"name": "s", "valueFrom": {"secretKeyRef": {"name": "x"}}},
        ],
        envFrom=[{}],
    ),
    "mounts": container(
        volumeMounts=[{"name": "none", "mountPath": "/x"}, {"name": "data"}, {"name": "data", "mountPath": "/y"}]
    ),
    "probes": container(
        livenessProbe={},
        readinessProbe={"httpGet": {"port": 0}},
        startupProbe={"tcpSocket": {"port": "named"}, "exec": {"command": []}, "periodSeconds": -1},
    ),
    "volumes": pods(
        volumes=[
            {"name": "v", "emptyDir": {}},
            {"name": "v", "emptyDir": {}},
            {"name": "Z_", "emptyDir": {}, "secret": {"secretName": "x"}},
            {"name": "cm", "configMap": {}},
            {"name": "sec", "secret": {}},
        ]
    ),
    "policies of a pod": pods(restartPolicy="Sometimes", dnsPolicy="None of these", activeDeadlineSeconds=0),
    "zeros, quantities and images": pods(
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
    "a pod": new(f"{CORE}/pods", spec={"containers": [{"name": "app", "image": "konverge.test/app:1"}]}),
    # Workloads
    "an empty deployment": new(f"{APPS}/deployments", spec={"replicas": -1}),
    "numbers of a deployment": deployment(minReadySeconds=-1, revisionHistoryLimit=-1),
    "no surge and none unavailable": deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    "a surge of some": deployment(strategy={"rollingUpdate": {"maxSurge": "some"}}),
    "recreating in steps": deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    "an empty selector": deployment(selector={}),
    "a selector that cannot be": deployment(
        selector={
            "matchExpressions": [{"key": "b", "operator": "In"}, {"key": "c", "operator": "Exists", "values": ["x"]}]
        }
    ),
    "a deployment": deployment(replicas=0, paused=False),
    "a daemon set": new(f"{APPS}/daemonsets", spec=workload()),
    "a stateful set": new(f"{APPS}/statefulsets", spec=workload(serviceName="x")),
    "a stateful set of another policy": new(f"{APPS}/statefulsets", spec=workload(podManagementPolicy="Wild")),
    "a job": new(
        f"{BATCH}/jobs",
        spec={"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}},
    ),
    "a job that restarts": new(
        f"{BATCH}/jobs", spec={"template": {"spec": {"containers": [{"name": "a", "image": "x"}]}}}
    ),
    "wrong types": [question for spec in _WRONG_SPECS for question in deployment(**spec)],
    # Services
    "no ports": service(ports=[]),
    "wrong ports": service(
        ports=[{"name": "a", "port": 0}, {"name": "a", "port": 1, "protocol": "ICMP", "targetPort": "a b"}]
    ),
    "a type that is none": service(type="Magic"),
    "a node port where none may be": service(ports=[{"port": 80, "nodePort": 30080}]),
    "an external name": service(type="ExternalName", externalName="example.com", ports=[]),
    "an external name of nothing": service(type="ExternalName"),
    "an address of another network": service(clusterIP="192.0.2.1"),
    "an address that is none": service(clusterIP="none"),
    "a headless service": service(clusterIP="None", selector={"a": "b"}, ports=[]),
    "a node port": service(type="NodePort", sessionAffinity="ClientIP"),
    # Configuration
    "keys": new(f"{CORE}/configmaps", data={"bad key": "x", "..": "y"}, binaryData={"bad key": "eA=="}),
    "empty values": new(f"{CORE}/configmaps", data={"a": None, "b": ""}),
    "nothing": new(f"{CORE}/configmaps", data={}),
    "unknown fields": new(f"{CORE}/configmaps", data={"a": "1"}, colour="red"),
    "unknown fields, refused": new(f"{CORE}/configmaps", f"{TRY}&fieldValidation=Strict", colour="red", size=1),
    "typed secrets": [
        question
        for kind in ("tls", "dockerconfigjson", "basic-auth", "ssh-auth", "service-account-token")
        for question in new(f"{CORE}/secrets", type=f"kubernetes.io/{kind}")
    ],
    "data of a secret": [
        question
        for data in ({"a": "!!!"}, {"a": 1}, {"a": None}, {"a b": "eA=="})
        for question in new(f"{CORE}/secrets", data=data)
    ],
    "text of a secret": new(f"{CORE}/secrets", stringData={"a": "b"}, data={"a": "eA==", "c": "eA=="}),
    # The smaller kinds
    "a budget of both limits": new("/apis/policy/v1/namespaces/{n}/poddisruptionbudgets", spec={"minAvailable": -1}),
    "an autoscaler of nothing": new(
        "/apis/autoscaling/v2/namespaces/{n}/horizontalpodautoscalers", spec={"scaleTargetRef": {}}
    ),
    "a claim of nothing": new(f"{CORE}/persistentvolumeclaims", spec={}),
    "a claim": new(
        f"{CORE}/persistentvolumeclaims",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
    ),
    "an ingress of nothing": new("/apis/networking.k8s.io/v1/namespaces/{n}/ingresses", spec={}),
    "a role of nothing": new(f"{RBAC}/roles", rules=[{}]),
    "a binding of nothing": new(f"{RBAC}/rolebindings", subjects=[]),
    "a lease": new(
        "/apis/coordination.k8s.io/v1/namespaces/{n}/leases", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}
    ),
    "a schedule": new(
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
        Question(
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
        Question("GET", "/apis/events.k8s.io/v1/namespaces/{n}/events/e"),
        Question("DELETE", f"{CORE}/events/e"),
    ],
    # Requests
    "paths that are none": [
        Question("GET", f"{CORE}/foos"),
        Question("POST", f"{CORE}/configmaps/x", {}),
        Question("PUT", f"{CORE}/configmaps", {}),
        Question("GET", f"{CORE}/configmaps/none"),
        Question("DELETE", f"{CORE}/configmaps/none"),
        Question("PUT", f"{CORE}/configmaps/none", {"metadata": {"name": "none"}}),
        Question("PUT", f"{CORE}/configmaps/none", {"metadata": {"name": "other"}}),
        Question("PUT", f"{CORE}/configmaps/none", {}),
        Question("POST", f"{CORE}/configmaps", b"x", "text/plain"),
    ],
    "queries that are none": [
        Question("GET", f"{CORE}/configmaps?limit=many"),
        Question("GET", f"{CORE}/configmaps?labelSelector=a%3D%3D%3D"),
        Question("GET", f"{CORE}/configmaps?labelSelector=a%20in%20b"),
        Question("GET", f"{CORE}/configmaps?fieldSelector=spec.x%3D1"),
        Question("GET", f"{CORE}/pods?fieldSelector=spec.x%3D1"),
        Question("GET", f"{CORE}/configmaps?resourceVersion=new"),
        Question("GET", f"{CORE}/configmaps?resourceVersionMatch=Exact"),
        Question("DELETE", f"{CORE}/configmaps/none?propagationPolicy=Later"),
        Question("GET", f"{CORE}/configmaps?watch=1&sendInitialEvents=true"),
        Question("GET", f"{CORE}/configmaps?watch=1&resourceVersionMatch=NotOlderThan"),
    ],
    "merge patches": story(
        "merged",
        patched("merged", {"data": {"a": None, "b": "2"}}),
        patched("merged", {"metadata": {"resourceVersion": "1"}}),
        patched("merged", {"metadata": {"name": "other"}}),
        patched("merged", {"metadata": {"generation": 7, "creationTimestamp": None}}),
        patched("merged", {"colour": "red"}),
        patched("merged", {}, query="?force=true"),
        patched("merged", {}, query="?fieldValidation=Sometimes"),
        patched("merged", {}, query="?dryRun=Some"),
        patched("merged", {}, query=f"?fieldManager={'m' * 129}"),
        patched("merged", {}, "text/plain"),
    ),
    "json patches": story(
        "json",
        patched("json", [{"op": "replace", "path": "/data/new", "value": "x"}], JSON_PATCH),
        patched("json", [{"op": "remove", "path": "/data/new"}], JSON_PATCH),
        patched("json", [{"op": "remove", "path": "/data/new"}], JSON_PATCH),
        patched("json", [{"op": "test", "path": "/data/a", "value": "2"}], JSON_PATCH),
        patched("json", [{"op": "test", "path": "/data/none", "value": None}], JSON_PATCH),
        patched("json", [{"op": "add", "path": "/none/a", "value": "2"}], JSON_PATCH),
        patched("json", [{"op": "copy", "from": "/data/a", "path": "/data/b"}], JSON_PATCH),
        patched("json", [{"op": "move", "from": "/data/a", "path": "/data/c"}], JSON_PATCH),
        patched("json", [{"op": "add", "path": "/data/d"}], JSON_PATCH),
    ),
    "strategic patches": story(
        "strategic",
        patched("strategic", {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}, STRATEGIC),
        patched("strategic", {"metadata": {"finalizers": ["a.b/e", "a.b/d", "a.b/f"]}}, STRATEGIC),
        patched("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c", "a.b/e"]}}, STRATEGIC),
        patched(
            "strategic",
            {"metadata": {"$setElementOrder/finalizers": ["a.b/f", "x.y/z"], "finalizers": ["x.y/z"]}},
            STRATEGIC,
        ),
        patched("strategic", {"metadata": {"finalizers": None}}, STRATEGIC),
        patched("strategic", {"data": {"b": "2"}}, STRATEGIC),
    ),
    "applies": story(
        "applied",
        applied("applied", data={"a": "2"}),
        applied("applied", "?fieldManager=me&force=true", data={"a": "2", "b": "3"}),
        applied("applied", "?fieldManager=me&force=true", data={"a": "2", "b": "3"}),
        applied("applied", "?fieldManager=other", data={"b": "3"}),
        applied("applied", data={"a": "2"}),
        applied("applied", "", data={}),
        applied("applied", metadata={"name": "other"}),
        applied("applied", kind="Secret"),
        applied("applied", metadata={"name": "applied", "resourceVersion": "1"}),
        applied("applied", metadata={"name": "applied", "managedFields": []}),
        applied("unborn", metadata={"name": "unborn", "uid": "1234"}),
        applied("unborn", "?fieldManager=me&dryRun=All", data={"a": "1"}),
    ),
    "guards": story(
        "guarded",
        Question("PUT", f"{CORE}/configmaps/guarded", {"metadata": {"name": "guarded", "resourceVersion": "1"}}),
        Question("DELETE", f"{CORE}/configmaps/guarded", {"preconditions": {"uid": "other"}}),
        Question("DELETE", f"{CORE}/configmaps/guarded?dryRun=All"),
    ),
    "immutable configuration": story(
        "immutable",
        patched("immutable", {"immutable": True}),
        patched("immutable", {"data": {"a": "2"}, "immutable": None}),
        patched("immutable", {"metadata": {"labels": {"a": "b"}}}),
    ),
    "a finalizer": story(
        "held",
        patched("held", {"metadata": {"finalizers": ["example.com/hold"]}}),
        Question("DELETE", f"{CORE}/configmaps/held"),
        patched("held", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
        Question("DELETE", f"{CORE}/configmaps/held?propagationPolicy=Background"),
        patched("held", {"metadata": {"finalizers": None}}),
    ),
    # Custom resources
    "a custom resource": webapp(replicas=2, note=None, ports=[{"name": "http", "port": 80}], extra={"a": {"b": None}}),
    "required": webapp(image=None),
    "texts": webapp(image="ab") + webapp(image="Shop") + webapp(image=7) + webapp(size="huge") + webapp(size=1),
    "numbers": webapp(replicas="three")
    + webapp(replicas=-1)
    + webapp(replicas=11)
    + webapp(replicas=1.5)
    + webapp(ratio=0.3),
    "a number out of its format": webapp(replicas=99999999999),
    "lists": webapp(hosts=["a", "a"]) + webapp(hosts=["a", 1, None]) + webapp(ports=[{"name": n} for n in "abcd"]),
    "keyed lists": webapp(ports=[{"port": 1}, {"name": "a"}, {"name": "a"}])
    + webapp(ports=[{"name": "a", "port": True}]),
    "mappings": webapp(limits={}) + webapp(limits={"a": "b"}) + webapp(limits=[1]) + webapp(extra="x"),
    "embedded objects": webapp(template={"a": 1})
    + webapp(template={"apiVersion": "v1", "kind": "X", "metadata": {"name": "Y_"}}),
    "one of two": webapp(source={"git": "a", "oci": "b"}) + webapp(source={}),
    "a date": webapp(since="yesterday") + webapp(since="2026-01-31T08:00:00Z"),
    "nulls": webapp(size=None, replicas=None, hosts=None),
    "unknown fields of a custom resource": webapp(unknown=1, ports=[{"name": "a", "extra": 1}])
    + webapp(f"{TRY}&fieldValidation=Strict", unknown=1, ports=[{"name": "a", "extra": 1}]),
    "another kind": [
        Question("POST", WEBAPPS + TRY, {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": {"name": "x"}})
    ],
    "the life of a custom resource": shop(
        "living",
        of_shop("living", {"spec": {"replicas": 3}, "status": {"replicas": 9}}),
        Question(
            "PATCH",
            f"{WEBAPPS}/living/status",
            {
                "status": {"replicas": 2, "selector": "a=b"},
                "spec": {"replicas": 7},
                "metadata": {"labels": {"a": "b"}},
            },
            MERGE,
        ),
        Question("GET", f"{WEBAPPS}/living/scale"),
        Question("PUT", f"{WEBAPPS}/living/scale", {"metadata": {"name": "living"}, "spec": {"replicas": 5}}),
        Question("PATCH", f"{WEBAPPS}/living/scale", {"spec": {"replicas": -1}}, MERGE),
        Question("GET", f"{WEBAPPS}/living"),
        Question(
            "PUT",
            f"{WEBAPPS}/living",
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "WebApp",
                "metadata": {"name": "living"},
                "spec": {"image": "shop:1"},
            },
        ),
        of_shop("living", {"spec": {"size": "huge"}}),
        of_shop("living", {}, STRATEGIC),
    ),
    "applied custom resources": shop(
        "applied",
        apply_shop("applied", "?fieldManager=me", image="shop:2"),
        apply_shop("applied", ports=[{"name": "a", "port": 80}, {"name": "b", "port": "http"}], hosts=["a", "b"]),
        apply_shop("applied", ports=[{"name": "b", "port": "grpc"}], hosts=["b"]),
        apply_shop("applied", "?fieldManager=other", ports=[{"name": "c"}], hosts=["c"]),
        apply_shop("applied"),
        apply_shop("applied", replicas=None),
    ),
}
