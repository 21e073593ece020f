"""Namespaces with labels of the Pod Security Standards refuse pods, and warn about workloads, as recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from konverge.errors import ForbiddenError, InvalidError
from konverge.kube import Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import DEPLOYMENT, NAMESPACE, POD, deployment, new, pod_spec
from tests.cluster.conformance.recorded_answers import RecordedRequest, ask, check_recorded, hide_namespace

pytestmark = pytest.mark.anyio

ANSWERS = Path(__file__).with_name("pod_security_answers.json")
LABEL = "pod-security.kubernetes.io/"
POLICIES: dict[str, dict[str, str]] = {
    "baseline": {"enforce": "baseline"},
    "baseline v1.18": {"enforce": "baseline", "enforce-version": "v1.18"},
    "baseline v1.26": {"enforce": "baseline", "enforce-version": "v1.26"},
    "baseline v1.33": {"enforce": "baseline", "enforce-version": "v1.33"},
    "restricted": {"enforce": "restricted"},
    "restricted v1.0": {"enforce": "restricted", "enforce-version": "v1.0"},
    "restricted v1.20": {"enforce": "restricted", "enforce-version": "v1.20"},
    "restricted v1.24": {"enforce": "restricted", "enforce-version": "v1.24"},
    "restricted v1.34": {"enforce": "restricted", "enforce-version": "v1.34"},
    "restricted v1.99": {"enforce": "restricted", "enforce-version": "v1.99"},
    "warn restricted": {"warn": "restricted"},
    "warn baseline, enforce restricted": {"warn": "baseline", "enforce": "restricted"},
    "warn v1.20, enforce restricted": {"warn-version": "v1.20", "enforce": "restricted"},
    "audit restricted": {"audit": "restricted", "enforce": "privileged"},
}


def container(name: str = "app", **fields: Any) -> Object:
    return {"name": name, "image": "konverge.test/app:1", **fields}


def secured(**context: Any) -> Object:
    """Return a pod whose only container has that security context."""
    return {"spec": {"containers": [container(securityContext=context)]}}


def pod_secured(**context: Any) -> Object:
    return {"spec": {"containers": [container()], "securityContext": context}}


def with_spec(**spec: Any) -> Object:
    return {"spec": pod_spec(**spec)}


def volume(**source: Any) -> Object:
    return with_spec(volumes=[{"name": "data", **source}])


def annotated(name: str, value: str) -> Object:
    return {"metadata": {"annotations": {name: value}}, "spec": pod_spec()}


GOOD: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
HTTP: Object = {"httpGet": {"port": 80, "host": "10.1.1.1"}}
TCP: Object = {"tcpSocket": {"port": 80, "host": "example.com"}}
PODS: dict[str, Object] = {
    "plain": with_spec(),
    "good": secured(**GOOD),
    "good, added capability": secured(**{**GOOD, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
    "good for the whole pod": {
        "spec": {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                container(securityContext={k: GOOD[k] for k in ("allowPrivilegeEscalation", "capabilities")})
            ],
        }
    },
    "two containers": {
        "spec": {
            "initContainers": [container("first", securityContext={"privileged": True})],
            "containers": [container("a"), container("b", securityContext=GOOD), container("c")],
        }
    },
    "privileged": secured(privileged=True),
    "escalation": secured(allowPrivilegeEscalation=True),
    "capabilities": secured(capabilities={"add": ["NET_ADMIN", "CHOWN", "SYS_TIME"]}),
    "drops one": secured(capabilities={"drop": ["CHOWN"], "add": ["KILL"]}),
    "host network": with_spec(hostNetwork=True, hostPID=True),
    "host ipc": with_spec(hostIPC=True),
    "host path": volume(hostPath={"path": "/etc"}),
    "empty directory": volume(emptyDir={}),
    "nfs": volume(nfs={"server": "s", "path": "/"}),
    "two volumes": with_spec(
        volumes=[{"name": "a", "nfs": {"server": "s", "path": "/"}}, {"name": "b", "hostPath": {"path": "/"}}]
    ),
    "image volume": volume(image={"reference": "konverge.test/data:1"}),
    "host port": {"spec": {"containers": [container(ports=[{"containerPort": 80, "hostPort": 8080}])]}},
    "host ports": {
        "spec": {
            "containers": [
                container(
                    "a", ports=[{"containerPort": 80, "hostPort": 9090}, {"containerPort": 81, "hostPort": 8080}]
                ),
                container("b", ports=[{"containerPort": 80, "hostPort": 80}]),
            ]
        }
    },
    "probe host": {"spec": {"containers": [container(livenessProbe=HTTP)]}},
    "probe hosts": {
        "spec": {
            "containers": [
                container("b", readinessProbe=HTTP, lifecycle={"preStop": {"httpGet": {"port": 1, "host": "::1"}}}),
                container("a", startupProbe=TCP),
            ]
        }
    },
    "unmasked": secured(procMount="Unmasked"),
    "unmasked, own users": {
        "spec": {"hostUsers": False, "containers": [container(securityContext={"procMount": "Unmasked"})]}
    },
    "own users": with_spec(hostUsers=False),
    "app armor": secured(appArmorProfile={"type": "Unconfined"}),
    "app armor of the pod": pod_secured(appArmorProfile={"type": "Unconfined"}),
    "app armor allowed": secured(appArmorProfile={"type": "RuntimeDefault"}),
    "selinux type": secured(seLinuxOptions={"type": "spc_t", "user": "u"}),
    "selinux role": pod_secured(seLinuxOptions={"role": "r", "level": "s0"}),
    "selinux engine": secured(seLinuxOptions={"type": "container_engine_t"}),
    "seccomp": secured(seccompProfile={"type": "Unconfined"}),
    "seccomp of the pod": pod_secured(seccompProfile={"type": "Unconfined"}),
    "seccomp localhost": secured(seccompProfile={"type": "Localhost", "localhostProfile": "a.json"}),
    "seccomp annotation": annotated("seccomp.security.alpha.kubernetes.io/pod", "unconfined"),
    "sysctl": pod_secured(sysctls=[{"name": "kernel.msgmax", "value": "1"}]),
    "sysctl of 1.27": pod_secured(sysctls=[{"name": "net.ipv4.ip_local_reserved_ports", "value": "1"}]),
    "sysctl of 1.32": pod_secured(sysctls=[{"name": "net.ipv4.tcp_rmem", "value": "1"}]),
    "root": secured(runAsUser=0),
    "root pod": pod_secured(runAsUser=0, runAsNonRoot=False),
    "not non-root": secured(runAsNonRoot=False),
    "windows": {"spec": {"os": {"name": "windows"}, "containers": [container()]}},
    "windows host process": {
        "spec": {
            "os": {"name": "windows"},
            "hostNetwork": True,
            "securityContext": {"windowsOptions": {"hostProcess": True}},
            "containers": [container(securityContext={"windowsOptions": {"hostProcess": True}})],
        }
    },
    "generated name": {"metadata": {"generateName": "web-", "name": ""}, "spec": pod_spec(hostNetwork=True)},
    "invalid": {"spec": {"hostNetwork": True, "containers": [container(image="")]}},
}
WORKLOADS = {
    "podtemplates": ("/api/v1", "template"),
    "replicationcontrollers": ("/api/v1", "spec"),
    "deployments": ("/apis/apps/v1", "spec"),
    "replicasets": ("/apis/apps/v1", "spec"),
    "daemonsets": ("/apis/apps/v1", "spec"),
    "statefulsets": ("/apis/apps/v1", "spec"),
    "jobs": ("/apis/batch/v1", "job"),
    "cronjobs": ("/apis/batch/v1", "cronjob"),
}


def workload(plural: str) -> RecordedRequest:
    """Return the creation of a workload whose pods use the network of the node."""
    root, form = WORKLOADS[plural]
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(hostNetwork=True)}
    job = {"template": {"spec": pod_spec(hostNetwork=True, restartPolicy="Never")}}
    selector: Any = labels if plural == "replicationcontrollers" else {"matchLabels": labels}
    body: Object = {
        "template": {"template": template},
        "spec": {"spec": {"selector": selector, "template": template}},
        "job": {"spec": job},
        "cronjob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}},
    }[form]
    return RecordedRequest(f"{root}/namespaces/{{n}}/{plural}", {"metadata": {"name": "x"}, **body})


def pod(body: Object) -> RecordedRequest:
    metadata = {"name": "x", **body.get("metadata", {})}
    return RecordedRequest("/api/v1/namespaces/{n}/pods", {**body, "metadata": metadata})


async def label(cluster: Cluster, policy: dict[str, str]) -> None:
    """Label the namespace, and wait until the server uses the labels."""
    labels = {f"{LABEL}{name}": value for name, value in policy.items()}
    await cluster.client.patch(
        NAMESPACE, ObjectKey("", cluster.namespace), {"metadata": {"labels": labels}}, patch_type="merge"
    )
    if policy.get("enforce", "privileged") == "privileged" and "warn" not in policy:
        return
    transport = cluster.new_transport()

    async def is_used() -> bool:
        answer = await ask(transport, pod(secured(privileged=True)), cluster.namespace)
        return answer["status"] == 403 or "warning" in answer

    await cluster.eventually(is_used, describe="the server uses the labels")


@pytest.mark.parametrize("policy", POLICIES)
async def test_pods_are_judged_by_the_labels_of_their_namespace(cluster: Cluster, policy: str) -> None:
    await label(cluster, POLICIES[policy])
    transport = cluster.new_transport()

    answers = {name: await ask(transport, pod(body), cluster.namespace) for name, body in PODS.items()}

    generated = answers["generated name"]
    if "message" in generated:
        generated["message"] = re.sub(r"web-[a-z0-9]{5}", "web-<suffix>", generated["message"])
    check_recorded(cluster, ANSWERS, policy, answers)


@pytest.mark.parametrize("policy", ["baseline", "warn restricted", "audit restricted"])
async def test_workloads_are_only_warned_about(cluster: Cluster, policy: str) -> None:
    await label(cluster, POLICIES[policy])
    transport = cluster.new_transport()

    answers = {plural: await ask(transport, workload(plural), cluster.namespace) for plural in WORKLOADS}

    check_recorded(cluster, ANSWERS, f"workloads: {policy}", answers)


NAMESPACES: dict[str, dict[str, str]] = {
    "level": {"enforce": "strict"},
    "version": {"enforce": "baseline", "enforce-version": "1.30"},
    "all": {"enforce": "", "audit": "x", "warn-version": "v2.1"},
    "valid": {"enforce": "restricted", "audit": "baseline", "warn-version": "v1.30"},
}


@pytest.mark.parametrize("name", NAMESPACES)
async def test_the_labels_of_a_namespace_are_validated(cluster: Cluster, name: str) -> None:
    labels = {f"{LABEL}{key}": value for key, value in NAMESPACES[name].items()}
    request = RecordedRequest("/api/v1/namespaces", {"metadata": {"name": "x", "labels": labels}})

    answer = await ask(cluster.new_transport(), request, cluster.namespace)

    check_recorded(cluster, ANSWERS, f"namespace: {name}", answer)


async def test_a_namespace_warns_about_the_pods_that_it_has(cluster: Cluster) -> None:
    for name in ("b", "a", "c"):
        spec = pod_spec(hostNetwork=name != "c")
        await cluster.client.create(new(POD, cluster.namespace, name, spec=spec))
    labels = {f"{LABEL}enforce": "baseline"}
    transport = cluster.new_transport()

    response = await transport.request(
        "PATCH",
        f"/api/v1/namespaces/{cluster.namespace}",
        headers={"content-type": "application/merge-patch+json", "accept": "application/json"},
        body=json.dumps({"metadata": {"labels": labels}}).encode(),
        timeout_seconds=60,
    )

    warning = hide_namespace(response.headers.get("warning", ""), cluster.namespace)
    assert warning == (
        '299 - "existing pods in namespace \\"<namespace>\\" violate the new PodSecurity enforce level '
        '\\"baseline:latest\\"", 299 - "a (and 1 other pod): host namespaces"'
    )


async def test_a_pod_of_before_may_change_as_long_as_its_images_stay(cluster: Cluster) -> None:
    created = await cluster.client.create(new(POD, cluster.namespace, "old", spec=pod_spec(hostNetwork=True)))
    await label(cluster, {"enforce": "baseline"})
    key = ObjectKey.of(created)

    await cluster.client.patch(POD, key, {"metadata": {"labels": {"a": "b"}}}, patch_type="merge")

    with pytest.raises(ForbiddenError):
        await cluster.client.patch(
            POD,
            key,
            {"spec": {"containers": [{"name": "app", "image": "konverge.test/app:2"}]}},
            patch_type="strategic",
        )


async def test_a_controller_reports_that_its_pods_are_refused(cluster: Cluster) -> None:
    await label(cluster, {"enforce": "baseline"})
    wanted = deployment(cluster.namespace)
    wanted["spec"]["template"]["spec"]["hostNetwork"] = True
    await cluster.client.create(wanted)

    async def refused() -> Any:
        found = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))
        conditions = found.get("status", {}).get("conditions", ())
        return next((each for each in conditions if each["type"] == "ReplicaFailure"), None)

    condition = await cluster.eventually(refused)

    assert (condition["status"], condition["reason"]) == ("True", "FailedCreate")
    assert 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)' in condition["message"]


async def test_invalid_labels_cannot_be_added_later(cluster: Cluster) -> None:
    with pytest.raises(InvalidError):
        await cluster.client.patch(
            NAMESPACE,
            ObjectKey("", cluster.namespace),
            {"metadata": {"labels": {f"{LABEL}warn": "much"}}},
            patch_type="merge",
        )
