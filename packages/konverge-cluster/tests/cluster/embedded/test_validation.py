"""Validation of the built-in kinds: the field and the text of each rejection."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import BadRequestError, InvalidError
from konverge.kube import GroupVersionKind, Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from tests.cluster.embedded.objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    config_map,
    deployment,
    key,
    pod,
    service,
    workload,
)

BATCH, POLICY, RBAC = "batch", "policy", "rbac.authorization.k8s.io"
IMMUTABLE = "field is immutable"


def find_create_errors(api: ApiServer, gvk: GroupVersionKind, body: Object) -> set[tuple[str, str]]:
    """Return the fields and the texts with which a new object is rejected."""
    with pytest.raises(InvalidError) as caught:
        api.create(gvk, body)
    return {(cause.field, cause.message) for cause in caught.value.causes}


def find_patch_errors(api: ApiServer, gvk: GroupVersionKind, name: str, patch: Object) -> set[tuple[str, str]]:
    """Return the fields and the texts with which a merge patch is rejected."""
    with pytest.raises(InvalidError) as caught:
        api.patch(gvk, key(name), patch)
    return {(cause.field, cause.message) for cause in caught.value.causes}


def thing(**fields: Any) -> Object:
    return {"metadata": {"name": "thing", "namespace": "default"}, **fields}


def test_all_mistakes_are_told_in_one_message(api: ApiServer) -> None:
    body = deployment(replicas=-1, selector=None, template={"spec": {}})

    with pytest.raises(InvalidError) as caught:
        api.create(DEPLOYMENT, body)

    assert caught.value.message == (
        'Deployment.apps "web" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, '
        "spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: `selector` does not match "
        "template `labels`, spec.template.spec.containers: Required value]"
    )
    assert caught.value.details["kind"] == "Deployment"


@pytest.mark.parametrize(
    ("metadata", "field", "begin"),
    [
        ({}, "metadata.name", "Required value: name or generateName is required"),
        ({"name": "X_"}, "metadata.name", 'Invalid value: "X_": a lowercase RFC 1123 subdomain'),
        ({"generateName": "_", "name": "x"}, "metadata.generateName", 'Invalid value: "_"'),
        ({"name": "x", "labels": {"a b": ""}}, "metadata.labels", 'Invalid value: "a b": name part'),
        ({"name": "x", "labels": {"a": "-"}}, "metadata.labels", 'Invalid value: "-": a valid label'),
        ({"name": "x", "annotations": {"a b": ""}}, "metadata.annotations", 'Invalid value: "a b"'),
        ({"name": "x", "annotations": {"a": "x" * 262144}}, "metadata.annotations", "Too long: may not be more than"),
        ({"name": "x", "finalizers": ["plain"]}, "metadata.finalizers[0]", 'Invalid value: "plain": name is neither'),
        (
            {"name": "x", "ownerReferences": [{}]},
            "metadata.ownerReferences.uid",
            'Invalid value: "": must not be empty',
        ),
        ({"name": "x", "ownerReferences": [{}]}, "metadata.ownerReferences.apiVersion", 'Invalid value: "": version'),
    ],
)
def test_metadata_is_held_to_its_rules(api: ApiServer, metadata: Object, field: str, begin: str) -> None:
    errors_found = find_create_errors(api, CONFIG_MAP, {"metadata": {"namespace": "default", **metadata}})

    assert any(where == field and message.startswith(begin) for where, message in errors_found)


def test_an_object_has_one_controller(api: ApiServer) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "A", "name": name, "uid": name, "controller": True} for name in ("first", "second")
    ]
    body = config_map()
    body["metadata"]["ownerReferences"] = owners

    with pytest.raises(InvalidError, match='Found "true" in references for A/first and A/second'):
        api.create(CONFIG_MAP, body)


def test_a_cluster_wide_object_has_no_namespace(api: ApiServer) -> None:
    errors_found = find_create_errors(api, NAMESPACE, {"metadata": {"name": "team", "namespace": "default"}})

    assert ("metadata.namespace", "Forbidden: not allowed on this type") in errors_found


@pytest.mark.parametrize(
    ("container", "field", "message"),
    [
        ({"name": ""}, "name", "Required value"),
        ({"image": ""}, "image", "Required value"),
        (
            {"imagePullPolicy": "Soon"},
            "imagePullPolicy",
            'Unsupported value: "Soon": supported values: "Always", "IfNotPresent", "Never"',
        ),
        ({"ports": [{}]}, "ports[0].containerPort", "Required value"),
        (
            {"ports": [{"containerPort": 70000}]},
            "ports[0].containerPort",
            "Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"ports": [{"containerPort": 1, "name": "p"}, {"containerPort": 2, "name": "p"}]},
            "ports[1].name",
            'Duplicate value: "p"',
        ),
        (
            {"ports": [{"containerPort": 1, "protocol": "ICMP"}]},
            "ports[0].protocol",
            'Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        ),
        ({"env": [{"value": "x"}]}, "env[0].name", "Required value"),
        (
            {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            "env[0].valueFrom",
            'Invalid value: "": may not be specified when `value` is not empty',
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x"}}}]},
            "env[0].valueFrom.secretKeyRef.key",
            "Required value",
        ),
        (
            {"envFrom": [{}]},
            "envFrom",
            'Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
        ),
        ({"volumeMounts": [{"name": "none", "mountPath": "/x"}]}, "volumeMounts[0].name", 'Not found: "none"'),
        ({"volumeMounts": [{"name": "data"}]}, "volumeMounts[0].mountPath", "Required value"),
        ({"livenessProbe": {}}, "livenessProbe", "Required value: must specify a handler type"),
        (
            {"readinessProbe": {"httpGet": {"port": 0}}},
            "readinessProbe.httpGet.port",
            "Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            {"startupProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}},
            "startupProbe.tcpSocket",
            "Forbidden: may not specify more than 1 handler type",
        ),
    ],
)
def test_a_container_is_held_to_its_rules(api: ApiServer, container: Object, field: str, message: str) -> None:
    complete = {"name": "app", "image": "konverge.test/app:1", **container}
    spec = {"containers": [complete], "volumes": [{"name": "data", "emptyDir": {}}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}

    errors_found = find_create_errors(api, DEPLOYMENT, deployment(template=template))

    assert (f"spec.template.spec.containers[0].{field}", message) in errors_found


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"containers": []}, "containers", "Required value"),
        (
            {"initContainers": [{"name": "app", "image": "x"}]},
            "initContainers[0].name",
            'Duplicate value: "app"',
        ),
        (
            {"restartPolicy": "Sometimes"},
            "restartPolicy",
            'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, "volumes[1].name", 'Duplicate value: "v"'),
        ({"volumes": [{"name": "v", "secret": {}}]}, "volumes[0].secret.secretName", "Required value"),
        ({"volumes": [{"name": "v", "configMap": {}}]}, "volumes[0].configMap.name", "Required value"),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "configMap": {"name": "x"}}]},
            "volumes[0].configMap",
            "Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"activeDeadlineSeconds": 0},
            "activeDeadlineSeconds",
            "Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
    ],
)
def test_a_pod_is_held_to_its_rules(api: ApiServer, spec: Object, field: str, message: str) -> None:
    assert (f"spec.{field}", message) in find_create_errors(api, POD, pod(**spec))


def test_of_a_pod_only_little_changes(api: ApiServer) -> None:
    api.create(POD, pod())

    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "konverge.test/app:2"}]
    changed = api.patch(POD, key("web"), image, patch_type="json")
    ((field, message),) = find_patch_errors(api, POD, "web", {"spec": {"restartPolicy": "Never"}})

    assert changed["metadata"]["generation"] == 2
    assert field == "spec"
    assert message.startswith("Forbidden: pod updates may not change fields other than")


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"strategy": {"type": "Soon"}}, "spec.strategy", 'Unsupported value: {"type":"Soon"}'),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            "spec.strategy.rollingUpdate",
            "Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            "spec.strategy.rollingUpdate.maxUnavailable",
            "Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": "some"}}},
            "spec.strategy.rollingUpdate.maxSurge",
            'Invalid value: "some": a valid percent string',
        ),
        ({"selector": {}}, "spec.selector", "Invalid value: {}: empty selector is invalid for deployment"),
        (
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}},
            "spec.selector.matchExpressions[0].operator",
            'Invalid value: "Like": not a valid selector operator',
        ),
        (
            {"selector": {"matchLabels": {"app": "other"}}},
            "spec.template.metadata.labels",
            'Invalid value: {"app":"web"}: `selector` does not match template `labels`',
        ),
        ({"minReadySeconds": -1}, "spec.minReadySeconds", "Invalid value: -1: must be greater than or equal to 0"),
        (
            {"minReadySeconds": 9, "progressDeadlineSeconds": 9},
            "spec.progressDeadlineSeconds",
            "Invalid value: 9: must be greater than minReadySeconds",
        ),
    ],
)
def test_a_deployment_is_held_to_its_rules(api: ApiServer, spec: Object, field: str, message: str) -> None:
    errors_found = find_create_errors(api, DEPLOYMENT, deployment(**spec))

    assert any(where == field and sentence.startswith(message) for where, sentence in errors_found)


def test_the_selector_of_a_deployment_stays(api: ApiServer) -> None:
    body = deployment()
    body["spec"]["template"]["metadata"]["labels"] = {"app": "web", "tier": "front"}
    api.create(DEPLOYMENT, body)

    errors_found = find_patch_errors(api, DEPLOYMENT, "web", {"spec": {"selector": {"matchLabels": {"tier": "front"}}}})

    assert errors_found == {
        ("spec.selector", f'Invalid value: {{"matchLabels":{{"app":"web","tier":"front"}}}}: {IMMUTABLE}')
    }


def test_most_of_a_stateful_set_stays(api: ApiServer) -> None:
    api.create(STATEFUL_SET, thing(spec=workload(serviceName="web")))

    scaled = api.patch(STATEFUL_SET, key("thing"), {"spec": {"replicas": 3}})
    ((field, message),) = find_patch_errors(api, STATEFUL_SET, "thing", {"spec": {"serviceName": "other"}})

    assert scaled["spec"]["replicas"] == 3
    assert field == "spec"
    assert message.startswith("Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals'")


def test_the_claims_of_a_stateful_set_can_be_mounted(api: ApiServer) -> None:
    body = thing(spec=workload(serviceName="web"))
    mount = {"name": "data", "mountPath": "/data"}
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]

    api.create(STATEFUL_SET, body)

    assert ("spec.volumeClaimTemplates[0].spec.resources[storage]", "Required value") in find_create_errors(
        api, STATEFUL_SET, thing(spec=workload(serviceName="web", volumeClaimTemplates=[{"spec": {}}]))
    )


def test_what_a_job_runs_stays(api: ApiServer) -> None:
    run = {"restartPolicy": "Never", "containers": [{"name": "app", "image": "konverge.test/app:1"}]}
    api.create(JOB, thing(spec={"template": {"spec": run}}))

    errors_found = find_patch_errors(api, JOB, "thing", {"spec": {"completions": 4}})

    assert errors_found == {("spec.completions", f"Invalid value: 4: {IMMUTABLE}")}


def test_the_pods_of_a_job_end(api: ApiServer) -> None:
    run = {"restartPolicy": "Always", "containers": [{"name": "app", "image": "konverge.test/app:1"}]}

    errors_found = find_create_errors(api, JOB, thing(spec={"template": {"spec": run}}))

    assert ("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"') in errors_found


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"ports": []}, "spec.ports", "Required value"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port", "Invalid value: 0: must be between 1 and 65535, inclusive"),
        ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name", "Required value"),
        (
            {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]},
            "spec.ports[1].name",
            'Duplicate value: "a"',
        ),
        (
            {"type": "Magic"},
            "spec.type",
            'Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
        ),
        (
            {"ports": [{"port": 80, "nodePort": 30080}]},
            "spec.ports[0].nodePort",
            "Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        ({"type": "ExternalName"}, "spec.externalName", "Required value"),
        (
            {"clusterIP": "none"},
            "spec.clusterIPs[0]",
            'Invalid value: "none": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
    ],
)
def test_a_service_is_held_to_its_rules(api: ApiServer, spec: Object, field: str, message: str) -> None:
    assert (field, message) in find_create_errors(api, SERVICE, service(**spec))


def test_keys_of_configuration_are_file_names(api: ApiServer) -> None:
    errors_found = find_create_errors(api, CONFIG_MAP, config_map(**{"bad key": "", "..": ""}))

    assert {field for field, _ in errors_found} == {"data[bad key]", "data[..]"}


def test_a_key_has_one_value(api: ApiServer) -> None:
    errors_found = find_create_errors(api, CONFIG_MAP, {**config_map(a="x"), "binaryData": {"a": "eA=="}})

    assert errors_found == {("data[a]", 'Invalid value: "a": duplicate of key present in binaryData')}


@pytest.mark.parametrize("gvk", [CONFIG_MAP, SECRET])
def test_immutable_configuration_stays(api: ApiServer, gvk: GroupVersionKind) -> None:
    api.create(gvk, thing(data={"a": "eA=="}, immutable=True))

    errors_found = find_patch_errors(api, gvk, "thing", {"data": {"a": "eQ=="}, "immutable": None})
    labelled = api.patch(gvk, key("thing"), {"metadata": {"labels": {"still": "fine"}}})

    frozen = "Forbidden: field is immutable when `immutable` is set"
    assert errors_found == {("data", frozen), ("immutable", frozen)}
    assert labelled["metadata"]["labels"] == {"still": "fine"}


@pytest.mark.parametrize(
    ("kind", "data", "missing"),
    [
        ("kubernetes.io/tls", {}, {"data[tls.crt]", "data[tls.key]"}),
        ("kubernetes.io/dockerconfigjson", {}, {"data[.dockerconfigjson]"}),
        ("kubernetes.io/basic-auth", {}, {"data[username]", "data[password]"}),
        ("kubernetes.io/ssh-auth", {}, {"data[ssh-privatekey]"}),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, {"data[ssh-privatekey]"}),
        ("kubernetes.io/service-account-token", {}, {"metadata.annotations[kubernetes.io/service-account.name]"}),
    ],
)
def test_a_typed_secret_has_what_its_type_needs(api: ApiServer, kind: str, data: Object, missing: set[str]) -> None:
    errors_found = find_create_errors(api, SECRET, thing(type=kind, data=data))

    assert {field for field, _ in errors_found} == missing


def test_no_refusal_shows_the_value_of_a_secret(api: ApiServer) -> None:
    body = thing(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "aHVudGVyMg=="})

    errors_found = find_create_errors(api, SECRET, body)

    assert errors_found == {
        ("data[.dockerconfigjson]", 'Invalid value: "<secret contents redacted>": the value is not JSON')
    }


def test_the_data_of_a_secret_is_base64(api: ApiServer) -> None:
    with pytest.raises(BadRequestError, match="illegal base64 data at input byte 0"):
        api.create(SECRET, thing(data={"a": "!!!"}))


def test_the_type_of_a_secret_stays(api: ApiServer) -> None:
    api.create(SECRET, thing(data={"a": "eA=="}))

    assert find_patch_errors(api, SECRET, "thing", {"type": "other"}) == {
        ("type", f'Invalid value: "other": {IMMUTABLE}')
    }


@pytest.mark.parametrize(
    ("gvk", "body", "field", "message"),
    [
        (
            GroupVersionKind(POLICY, "v1", "PodDisruptionBudget"),
            {"spec": {"minAvailable": -1}},
            "spec.minAvailable",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
            {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment"}, "maxReplicas": 1}},
            "spec.scaleTargetRef.name",
            "Required value",
        ),
        (
            GroupVersionKind("", "v1", "PersistentVolumeClaim"),
            {"spec": {}},
            "spec.accessModes",
            "Required value: at least 1 access mode is required",
        ),
        (
            GroupVersionKind("networking.k8s.io", "v1", "Ingress"),
            {"spec": {}},
            "spec",
            "Invalid value: null: either `defaultBackend` or `rules` must be specified",
        ),
        (
            GroupVersionKind(RBAC, "v1", "Role"),
            {"rules": [{}]},
            "rules[0].verbs",
            "Required value: verbs must contain at least one value",
        ),
        (
            GroupVersionKind(RBAC, "v1", "RoleBinding"),
            {"roleRef": {"kind": "Hat", "name": "x"}},
            "roleRef.kind",
            'Unsupported value: "Hat": supported values: "Role", "ClusterRole"',
        ),
        (
            GroupVersionKind("coordination.k8s.io", "v1", "Lease"),
            {"spec": {"leaseDurationSeconds": 0}},
            "spec.leaseDurationSeconds",
            "Invalid value: 0: must be greater than 0",
        ),
        (
            GroupVersionKind(BATCH, "v1", "CronJob"),
            {"spec": {"schedule": "daily"}},
            "spec.schedule",
            'Invalid value: "daily": expected exactly 5 fields, found 1: [daily]',
        ),
        (
            GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice"),
            {"endpoints": []},
            "addressType",
            "Required value",
        ),
        (
            GroupVersionKind("apps", "v1", "ControllerRevision"),
            {"revision": -1},
            "revision",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, GroupVersionKind) else "",
)
def test_the_smaller_kinds_are_held_to_their_rules(
    api: ApiServer, gvk: GroupVersionKind, body: Object, field: str, message: str
) -> None:
    assert (field, message) in find_create_errors(api, gvk, thing(**body))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"replicas": "3"},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        ({"replicas": 1.5}, "json: cannot unmarshal number 1.5 into Go struct field"),
        ({"replicas": 2**31}, "json: cannot unmarshal number 2147483648 into Go struct field"),
        ({"paused": 1}, "cannot unmarshal number into Go struct field DeploymentSpec.spec.paused of type bool"),
        (
            {"selector": []},
            "cannot unmarshal array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
        ),
        ({"template": {"spec": {"containers": {}}}}, "of type []v1.Container"),
        ({"template": {"spec": {"containers": ["x"]}}}, "PodSpec.spec.template.spec.containers of type v1.Container"),
        ({"template": {"metadata": {"labels": []}}}, "of type map[string]string"),
        ({"template": {"metadata": {"creationTimestamp": "now"}}}, 'parsing time "now" as'),
        (
            {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": True}}}]}}},
            "quantities must match the regular expression",
        ),
    ],
)
def test_a_value_of_the_wrong_type_fails_the_request(api: ApiServer, spec: Object, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        api.create(DEPLOYMENT, deployment(**spec))

    assert caught.value.message.startswith('Deployment in version "v1" cannot be handled as a Deployment: ')
    assert message in caught.value.message
