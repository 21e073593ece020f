"""An API server accepts the objects that short forms expand to."""

from __future__ import annotations

import json

import pytest

from konverge_cluster.testing import Cluster
from tests.box.file.sample_boxes import load_resource

ENTRIES = [
    "deployments: [{image: nginx, replicas: 2, port: 80, env: {A: b}, resources: {requests: {cpu: 100m}}}]",
    "statefulSets: [{image: nginx, serviceName: web, port: 80, podLabels: {tier: web}}]",
    "daemonSets: [{image: nginx, nodeSelector: {a: b}}]",
    "replicaSets: [{image: nginx, replicas: 1}]",
    "pods: [{image: nginx, containerName: web, podSecurityContext: {runAsNonRoot: true}}]",
    "jobs: [{image: nginx, backoffLimit: 2}]",
    "cronJobs: [{image: nginx, schedule: '0 * * * *', timeZone: Etc/UTC, completions: 1}]",
    "services: [{port: 80, targetPort: http}]",
    "services: [{type: ExternalName, externalName: example.com}]",
    "ingresses: [{host: web.example.com, ingressClassName: public}]",
    "configMaps: [{data: {a: b}}]",
    "secrets: [{type: Opaque, data: {a: Yg==}, stringData: {c: d}}]",
    "serviceAccounts: [{automountServiceAccountToken: false}]",
    "roles: [{rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}]",
    "roleBindings: [{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: [{kind: User, "
    "apiGroup: rbac.authorization.k8s.io, name: b}]}]",
    "persistentVolumeClaims: [{storage: 1Gi, accessModes: [ReadWriteOnce]}]",
    "horizontalPodAutoscalers: [{maxReplicas: 3, targetCPUUtilizationPercentage: 70}]",
    "podDisruptionBudgets: [{maxUnavailable: 1}]",
    "networkPolicies: [{podSelector: {}, policyTypes: [Ingress]}]",
    "resourceQuotas: [{hard: {pods: '10', requests.cpu: 4}, scopes: [NotTerminating]}]",
    "limitRanges: [{limits: [{type: Container, default: {cpu: 500m}}]}]",
    "namespaces: [{labels: {a: b}}]",
    "clusterRoles: [{rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}]",
]


@pytest.mark.anyio
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.partition(" [{")[0])
async def test_a_server_takes_what_a_short_form_stands_for(cluster: Cluster, entry: str) -> None:
    text = json.dumps(load_resource(f"onReconcile: {{{entry}}}").object).replace("{{ metadata.name }}", "web")
    wanted = json.loads(text)
    if "namespaces" not in entry and "clusterRoles" not in entry:
        wanted["metadata"]["namespace"] = cluster.namespace

    applied = await cluster.client.apply(wanted, field_manager="box", dry_run=True)

    assert applied.object["kind"] == wanted["kind"]
