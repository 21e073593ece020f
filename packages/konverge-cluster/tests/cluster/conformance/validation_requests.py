"""Objects that break a rule of their kind, in groups, for `test_validation`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.kube import Object
from tests.cluster.conformance.recorded_answers import RecordedRequest

__all__ = ["GROUPS"]


def _new_group(path: str, **cases: Object) -> dict[str, RecordedRequest]:
    """Return one request for each spec."""
    return _new_raw_group(path, **{name: {"spec": spec} for name, spec in cases.items()})


def _new_raw_group(path: str, **cases: Object) -> dict[str, RecordedRequest]:
    return {
        name: RecordedRequest(path, {**body, "metadata": {"name": "x", **body.get("metadata", {})}})
        for name, body in cases.items()
    }


_CORE = "/api/v1/namespaces/{n}"
_APPS = "/apis/apps/v1/namespaces/{n}"
_BATCH = "/apis/batch/v1/namespaces/{n}"
_NETWORKING = "/apis/networking.k8s.io/v1/namespaces/{n}"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"

_CONTAINER = {"name": "a", "image": "konverge.test/app:1"}
_COMMAND = {"exec": {"command": ["a"]}}


def _container(**fields: Any) -> Object:
    return {"containers": [{**_CONTAINER, **fields}]}


def _resources(**resources: Any) -> Object:
    return _container(resources=resources)


def _pod(**spec: Any) -> Object:
    return {"containers": [_CONTAINER], **spec}


def _volume(**source: Any) -> Object:
    return _pod(volumes=[{"name": "v", **source}])


def _workload(**spec: Any) -> Object:
    labels = {"a": "b"}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": _pod()}, **spec}


def _job(**spec: Any) -> Object:
    return {"template": {"spec": _pod(restartPolicy="Never")}, **spec}


def _cron_job(**spec: Any) -> Object:
    return {"schedule": "* * * * *", "jobTemplate": {"spec": _job()}, **spec}


_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


def _ingress_path(path: str | None, kind: str | None = "Prefix") -> Object:
    entry = {"path": path, "pathType": kind, "backend": _BACKEND}
    return {"rules": [{"http": {"paths": [{name: value for name, value in entry.items() if value is not None}]}}]}


def _ingress_host(host: str) -> Object:
    return {"rules": [{"host": host}]}


def _ingress_backend(**backend: Any) -> Object:
    return {"defaultBackend": backend}


def _service_backend(service: str, **port: Any) -> Object:
    return _ingress_backend(service={"name": service, "port": port})


def _policy(**spec: Any) -> Object:
    return {"podSelector": {}, **spec}


def _policy_port(**port: Any) -> Object:
    return _policy(ingress=[{"ports": [port]}])


def _policy_block(**block: Any) -> Object:
    return _policy(egress=[{"to": [{"ipBlock": block}]}])


def _claim(*modes: str, size: str = "1Gi", **spec: Any) -> Object:
    return {"accessModes": list(modes or ("ReadWriteOnce",)), "resources": {"requests": {"storage": size}}, **spec}


def _service(**spec: Any) -> Object:
    return {"ports": [{"port": 80}], **spec}


def _autoscaler(**spec: Any) -> Object:
    target = {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}
    return {"scaleTargetRef": target, "maxReplicas": 3, **spec}


def _resource_metric(**target: Any) -> Object:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", **target}}}
    return _autoscaler(metrics=[metric])


def _node_affinity(*terms: Object) -> Object:
    return _pod(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}}
    )


def _toleration(**toleration: Any) -> Object:
    return _pod(tolerations=[toleration])


GROUPS: Mapping[str, dict[str, RecordedRequest]] = {
    "resources": _new_group(
        f"{_CORE}/pods",
        request_over_limit=_resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
        memory_over_limit=_resources(requests={"memory": "2Gi"}, limits={"memory": "1Gi"}),
        request_equals_limit=_resources(requests={"cpu": "1000m"}, limits={"cpu": "1"}),
        negative_request=_resources(requests={"cpu": "-1"}),
        negative_limit=_resources(limits={"cpu": "-1"}),
        unknown_request=_resources(requests={"foo": "1"}),
        fraction_of_a_device=_resources(limits={"example.com/gpu": "1.5"}),
        device=_resources(limits={"example.com/gpu": "1"}),
        device_without_limit=_resources(requests={"example.com/gpu": "1"}),
        device_limit_differs=_resources(requests={"example.com/gpu": "1"}, limits={"example.com/gpu": "2"}),
        tiny_request=_resources(requests={"cpu": "0.0001"}),
        part_of_a_huge_page=_resources(requests={"hugepages-2Mi": "1Mi"}),
        huge_page_limit_differs=_resources(requests={"hugepages-2Mi": "2Mi"}, limits={"hugepages-2Mi": "4Mi"}),
        storage=_resources(requests={"storage": "1Gi"}),
        ephemeral_storage=_resources(requests={"ephemeral-storage": "1Gi"}),
        native_resource=_resources(requests={"kubernetes.io/x": "1"}),
        limit_of_pods=_resources(limits={"pods": "1"}),
        unknown_claim=_resources(limits={"cpu": "1"}, claims=[{"name": "zz"}]),
        init_container=_pod(
            initContainers=[
                {**_CONTAINER, "name": "b", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
            ]
        ),
    ),
    "pods": _new_group(
        f"{_CORE}/pods",
        negative_grace=_pod(terminationGracePeriodSeconds=-1),
        no_deadline=_pod(activeDeadlineSeconds=0),
        toleration_operator=_toleration(key="a", operator="Foo"),
        toleration_value=_toleration(key="a", operator="Exists", value="b"),
        toleration_key=_toleration(operator="Equal", value="b"),
        toleration_effect=_toleration(key="a", effect="Bad"),
        toleration_seconds=_toleration(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=3),
        host_network_port=_pod(hostNetwork=True, **_container(ports=[{"containerPort": 80, "hostPort": 81}])),
        host_port_twice=_container(
            ports=[{"containerPort": 80, "hostPort": 81}, {"containerPort": 82, "hostPort": 81}]
        ),
        host_aliases=_pod(hostAliases=[{"ip": "zz", "hostnames": ["a_b"]}]),
        no_dns_config=_pod(dnsPolicy="None"),
        unknown_priority_class=_pod(priorityClassName="nosuch"),
        system_priority_class=_pod(priorityClassName="system-node-critical"),
        own_priority=_pod(priority=5),
        own_preemption=_pod(preemptionPolicy="Bad"),
        unknown_runtime_class=_pod(runtimeClassName="nosuch"),
        overhead=_pod(overhead={"cpu": "1"}),
        negative_users=_pod(securityContext={"runAsUser": -1, "runAsGroup": -3, "fsGroup": -2}),
        sysctl=_pod(securityContext={"sysctls": [{"name": "a b", "value": "1"}]}),
        shared_and_host_processes=_pod(shareProcessNamespace=True, hostPID=True),
        hostname=_pod(hostname="A_b"),
        subdomain=_pod(subdomain="A_b"),
        no_node_terms=_node_affinity(),
        node_operator=_node_affinity({"matchExpressions": [{"key": "a", "operator": "Bad"}]}),
        node_values=_node_affinity(
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In"},
                    {"key": "b", "operator": "Exists", "values": ["x"]},
                    {"key": "c", "operator": "Gt", "values": ["1", "2"]},
                ]
            }
        ),
        pod_topology_key=_pod(
            affinity={
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"a": "b"}}}]
                }
            }
        ),
        pod_weight=_pod(
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "podAffinityTerm": {"topologyKey": "a"}}
                    ]
                }
            }
        ),
        spread=_pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Bad"}]),
        gates_twice=_pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        readiness_gate=_pod(readinessGates=[{"conditionType": "a b"}]),
        ephemeral_container=_pod(ephemeralContainers=[{"name": "e", "image": "i"}]),
        empty_pull_secret=_pod(imagePullSecrets=[{}]),
        node_selector=_pod(nodeSelector={"a b": "c"}),
        operating_system=_pod(os={"name": "foo"}),
    ),
    "volumes": _new_group(
        f"{_CORE}/pods",
        negative_size=_volume(emptyDir={"sizeLimit": "-1"}),
        host_path=_volume(hostPath={"path": "../a", "type": "Zz"}),
        no_source=_volume(),
        mode=_volume(secret={"secretName": "a", "defaultMode": 1000}),
        item_path=_volume(configMap={"name": "a", "items": [{"key": "k", "path": "../x"}]}),
        no_projection=_volume(projected={"sources": [{}]}),
        downward_field=_volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "spec.x"}}]}),
    ),
    "containers": _new_group(
        f"{_CORE}/pods",
        sub_path=_pod(
            volumes=[{"name": "v", "emptyDir": {}}],
            **_container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "../b"}]),
        ),
        image_space=_container(image=" i"),
        no_handler=_container(lifecycle={"preStop": {}}),
        no_command=_container(lifecycle={"postStart": {"exec": {}}}),
        liveness_threshold=_container(livenessProbe={**_COMMAND, "successThreshold": 2}),
        startup_threshold=_container(startupProbe={**_COMMAND, "successThreshold": 2}),
        probe_scheme=_container(readinessProbe={"httpGet": {"port": 80, "scheme": "FTP"}}),
        probe_port=_container(readinessProbe={"grpc": {"port": 0}}),
        probe_grace=_container(livenessProbe={**_COMMAND, "terminationGracePeriodSeconds": 0}),
        readiness_grace=_container(readinessProbe={**_COMMAND, "terminationGracePeriodSeconds": 1}),
        privileged_without_escalation=_container(
            securityContext={"privileged": True, "allowPrivilegeEscalation": False}
        ),
        privileged=_container(securityContext={"privileged": True}),
        negative_user=_container(securityContext={"runAsUser": -1}),
        process_mount=_container(securityContext={"procMount": "Zz"}),
        admin_without_escalation=_container(
            securityContext={"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}
        ),
        local_seccomp=_container(securityContext={"seccompProfile": {"type": "Localhost"}}),
        message_policy=_container(terminationMessagePolicy="Zz"),
        resize_policy=_container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "Zz"}]),
        field_variable=_container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.zzz"}}}]),
        resource_variable=_container(env=[{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.zz"}}}]),
        environment_source=_container(envFrom=[{"prefix": "=", "configMapRef": {"name": ""}}]),
        no_environment_source=_container(envFrom=[{}]),
        device=_container(volumeDevices=[{"name": "v", "devicePath": "/a"}]),
        address_without_port=_container(ports=[{"containerPort": 80, "hostIP": "zz"}]),
        port_twice=_container(ports=[{"containerPort": 80}, {"containerPort": 80}]),
    ),
    "deployments": _new_group(
        f"{_APPS}/deployments",
        negative_replicas=_workload(replicas=-1),
        negative_seconds=_workload(minReadySeconds=-1),
        negative_history=_workload(revisionHistoryLimit=-1),
        negative_deadline=_workload(progressDeadlineSeconds=-1),
        over_all=_workload(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "101%"}}),
        no_room=_workload(strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}),
        negative_surge=_workload(strategy={"rollingUpdate": {"maxSurge": -1}}),
    ),
    "stateful sets": _new_group(
        f"{_APPS}/statefulsets",
        negative_replicas=_workload(serviceName="s", replicas=-1),
        negative_history=_workload(serviceName="s", revisionHistoryLimit=-1),
        negative_seconds=_workload(serviceName="s", minReadySeconds=-1),
        negative_partition=_workload(
            serviceName="s", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}
        ),
        negative_start=_workload(serviceName="s", ordinals={"start": -1}),
        partition_on_delete=_workload(
            serviceName="s", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}
        ),
        claim_retention=_workload(
            serviceName="s", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Zz", "whenScaled": "Retain"}
        ),
    ),
    "daemon sets": _new_group(
        f"{_APPS}/daemonsets",
        negative_seconds=_workload(minReadySeconds=-1),
        negative_history=_workload(revisionHistoryLimit=-1),
        no_room=_workload(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}),
        strategy=_workload(updateStrategy={"type": "Zz"}),
        surge=_workload(
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
        ),
    ),
    "jobs": _new_group(
        f"{_BATCH}/jobs",
        negative_parallelism=_job(parallelism=-1),
        negative_completions=_job(completions=-1),
        negative_backoff=_job(backoffLimit=-1),
        negative_ttl=_job(ttlSecondsAfterFinished=-1),
        negative_deadline=_job(suspend=True, activeDeadlineSeconds=-1),
        mode=_job(completionMode="Zz"),
        indexed_without_completions=_job(completionMode="Indexed"),
        backoff_of_indexes=_job(backoffLimitPerIndex=1),
        failed_indexes=_job(maxFailedIndexes=1),
        failure_policy=_job(podFailurePolicy={"rules": [{"action": "Zz"}]}),
        success_policy=_job(successPolicy={"rules": []}),
        replacement_policy=_job(podReplacementPolicy="Zz"),
        manager=_job(managedBy="zz"),
        manual_without_selector=_job(manualSelector=True),
    ),
    "cron jobs": _new_group(
        f"{_BATCH}/cronjobs",
        minute=_cron_job(schedule="61 * * * *"),
        letters=_cron_job(schedule="a b c d e"),
        time_zone=_cron_job(timeZone="Nowhere/None"),
        zone_in_schedule=_cron_job(schedule="TZ=UTC * * * * *"),
        negative_deadline=_cron_job(startingDeadlineSeconds=-1),
        negative_history=_cron_job(successfulJobsHistoryLimit=-1),
        concurrency=_cron_job(concurrencyPolicy="Zz"),
        every_second=_cron_job(schedule="@every 1s"),
        unknown_descriptor=_cron_job(schedule="@never"),
    ),
    "ingresses": {
        **_new_group(
            f"{_NETWORKING}/ingresses",
            nothing={},
            backend=_ingress_backend(**_BACKEND),
            host=_ingress_host("a.b"),
            address=_ingress_host("1.2.3.4"),
            host_with_port=_ingress_host("a.b:80"),
            two_wildcards=_ingress_host("*.*.b"),
            only_wildcard=_ingress_host("*"),
            no_paths={"rules": [{"http": {"paths": []}}]},
            relative=_ingress_path("a"),
            relative_for_controller=_ingress_path("a", "ImplementationSpecific"),
            double_slash=_ingress_path("/a//b"),
            parent=_ingress_path("/a/../b", "Exact"),
            escaped_slash=_ingress_path("/a%2fb", "Exact"),
            no_path_type=_ingress_path("/", None),
            path_type=_ingress_path("/", "Zz"),
            empty_backend=_ingress_backend(),
            two_backends=_ingress_backend(**_BACKEND, resource={"apiGroup": "a", "kind": "b", "name": "c"}),
            resource_without_name=_ingress_backend(resource={"kind": "b"}),
            service_name=_service_backend("A_", number=80),
            two_ports=_service_backend("a", number=80, name="x"),
            large_port=_service_backend("a", number=70000),
            negative_port=_service_backend("a", number=-1),
            port_name=_service_backend("a", name="A_"),
            no_port=_service_backend("a"),
            tls={"defaultBackend": _BACKEND, "tls": [{"hosts": ["A_", "*.x.y"], "secretName": "A_"}]},
            tls_wildcards={"defaultBackend": _BACKEND, "tls": [{"hosts": ["*.*.y"]}]},
            class_name={"defaultBackend": _BACKEND, "ingressClassName": "A_"},
        ),
        **_new_raw_group(
            f"{_NETWORKING}/ingresses",
            two_classes={
                "metadata": {"annotations": {"kubernetes.io/ingress.class": "a"}},
                "spec": {"ingressClassName": "b", "defaultBackend": _BACKEND},
            },
        ),
    },
    "network policies": _new_group(
        f"{_NETWORKING}/networkpolicies",
        nothing={},
        port=_policy_port(port=0),
        large_port=_policy_port(port=70000),
        port_name=_policy_port(port="A_"),
        protocol=_policy_port(protocol="ICMP"),
        end_before_port=_policy_port(port=10, endPort=5),
        end_without_port=_policy_port(endPort=5),
        end_of_name=_policy_port(port="x", endPort=5),
        empty_peer=_policy(ingress=[{"from": [{}]}]),
        two_peers=_policy(ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]),
        cidr=_policy_block(cidr="zz"),
        no_cidr=_policy_block(),
        except_outside=_policy_block(cidr="10.0.0.0/8", **{"except": ["11.0.0.0/16"]}),
        except_all=_policy_block(cidr="10.0.0.0/8", **{"except": ["10.0.0.0/8"]}),
        except_nothing=_policy_block(cidr="10.0.0.0/8", **{"except": ["zz"]}),
        host_bits=_policy_block(cidr="10.1.0.0/8"),
        pod_selector={"podSelector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}},
        namespace_selector=_policy(ingress=[{"from": [{"namespaceSelector": {"matchLabels": {"a b": "c"}}}]}]),
        types=_policy(policyTypes=["Zz"]),
        three_types=_policy(policyTypes=["Ingress", "Egress", "Ingress"]),
    ),
    "claims": _new_group(
        f"{_CORE}/persistentvolumeclaims",
        nothing={},
        mode=_claim("Zz"),
        once_and_more=_claim("ReadWriteOncePod", "ReadWriteOnce"),
        mode_twice=_claim("ReadWriteOnce", "ReadWriteOnce"),
        negative_size=_claim(size="-1Gi"),
        zero_size=_claim(size="0"),
        class_name=_claim(storageClassName="A_"),
        volume_mode=_claim(volumeMode="Zz"),
        source_without_name=_claim(dataSource={"kind": "PersistentVolumeClaim", "name": ""}),
        selector=_claim(selector={"matchLabels": {"a b": "c"}}),
    ),
    "services": _new_group(
        f"{_CORE}/services",
        type=_service(type="Zz"),
        port=_service(ports=[{"port": 0}]),
        source_ranges=_service(loadBalancerSourceRanges=["10.0.0.0/8"]),
        external_address=_service(externalIPs=["zz"]),
        external_policy=_service(externalTrafficPolicy="Local"),
        unknown_external_policy=_service(type="NodePort", externalTrafficPolicy="Zz"),
        internal_policy=_service(internalTrafficPolicy="Zz"),
        families=_service(ipFamilies=["IPv5"]),
        family_policy=_service(ipFamilyPolicy="Zz"),
        dual_stack=_service(ipFamilyPolicy="RequireDualStack"),
        no_affinity_time=_service(
            sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}
        ),
        health_port=_service(healthCheckNodePort=30000),
        balancer_class=_service(loadBalancerClass="a"),
        balancer_ports=_service(allocateLoadBalancerNodePorts=True),
        external_name_with_address=_service(type="ExternalName", externalName="a.b", clusterIP="10.0.0.1"),
        application_protocol=_service(ports=[{"port": 80, "appProtocol": "A B"}]),
        distribution=_service(trafficDistribution="Zz"),
    ),
    "autoscalers": _new_group(
        "/apis/autoscaling/v2/namespaces/{n}/horizontalpodautoscalers",
        negative=_autoscaler(minReplicas=-1),
        zero=_autoscaler(minReplicas=0),
        metric=_autoscaler(metrics=[{"type": "Zz"}]),
        no_metric=_autoscaler(metrics=[{"type": "Resource"}]),
        no_use=_resource_metric(averageUtilization=0),
        two_targets=_resource_metric(averageUtilization=5, averageValue="1"),
        negative_window=_autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": -1}}),
        no_policies=_autoscaler(behavior={"scaleUp": {"policies": []}}),
        policy=_autoscaler(behavior={"scaleUp": {"policies": [{"type": "Zz", "value": 0, "periodSeconds": 0}]}}),
    ),
    "budgets": _new_group(
        "/apis/policy/v1/namespaces/{n}/poddisruptionbudgets",
        negative={"minAvailable": -1},
        over_all={"maxUnavailable": "101%"},
        letters={"maxUnavailable": "zz"},
        eviction={"minAvailable": 1, "unhealthyPodEvictionPolicy": "Zz"},
    ),
    "roles": {
        **_new_raw_group(
            f"{_RBAC}/namespaces/{{n}}/roles",
            path_in_namespace={"rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"]}]},
        ),
        **_new_raw_group(
            f"{_RBAC}/clusterroles",
            path_and_resource={
                "rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"], "resources": ["x"], "apiGroups": [""]}]
            },
            no_selector={"aggregationRule": {}},
            bad_selector={
                "aggregationRule": {
                    "clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Zz"}]}, {}]
                }
            },
        ),
        **_new_raw_group(
            f"{_RBAC}/namespaces/{{n}}/rolebindings",
            groups={
                "roleRef": {"apiGroup": "zz", "kind": "Role", "name": "x"},
                "subjects": [{"kind": "User", "name": "a", "apiGroup": "zz"}, {"kind": "ServiceAccount", "name": "A_"}],
            },
        ),
        **_new_raw_group(
            f"{_RBAC}/clusterrolebindings",
            no_namespace={
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"},
                "subjects": [{"kind": "ServiceAccount", "name": "a"}],
            },
        ),
    },
    "other kinds": {
        **_new_raw_group(
            "/apis/storage.k8s.io/v1/storageclasses",
            storage_class={"provisioner": "a b", "reclaimPolicy": "Zz", "volumeBindingMode": "Zz"},
            storage_topology={
                "provisioner": "a",
                "parameters": {"": "b"},
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": []}]}],
            },
        ),
        **_new_group(
            "/api/v1/persistentvolumes",
            volume={"capacity": {"storage": "-1"}, "accessModes": ["Zz"], "hostPath": {"path": "/a"}},
            volume_without_source={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
            volume_with_two_sources={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/a"},
                "nfs": {"server": "a", "path": "/b"},
                "persistentVolumeReclaimPolicy": "Zz",
            },
        ),
        **_new_raw_group(
            "/apis/discovery.k8s.io/v1/namespaces/{n}/endpointslices",
            endpoint_slice={
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["zz"]}, {"addresses": []}],
                "ports": [{"port": 80, "protocol": "Z"}, {"port": 1}],
            },
        ),
        **_new_group("/api/v1/nodes", node={"taints": [{"key": "a", "effect": "Zz"}], "podCIDR": "zz"}),
        **_new_raw_group(f"{_CORE}/events", event={"involvedObject": {"namespace": "other"}}),
    },
}
