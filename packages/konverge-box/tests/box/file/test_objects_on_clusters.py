"""An API server accepts the objects that short forms expand to, and refuses what a box file refuses."""

from __future__ import annotations

import json

import pytest
import yaml

from konverge.errors import BadRequestError, InvalidError, ServerError
from konverge_cluster.testing import Cluster
from tests.box.file.sample_boxes import find_errors, load_resource

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


# An entry, and in it a value that the file and the server accept and one that both refuse.
REFUSED = [
    ("deployments: [{image: nginx, port: VALUE}]", "8080", "80800"),
    ("deployments: [{image: nginx, livenessProbe: {tcpSocket: {port: VALUE}}}]", "8080", "0"),
    ("deployments: [{image: nginx, livenessProbe: {tcpSocket: {port: VALUE}}}]", "http", "'8080'"),
    ("deployments: [{image: nginx, name: VALUE}]", "admin", "Admin"),
    ("deployments: [{image: nginx, name: VALUE}]", "admin", "web_admin"),
    ("deployments: [{image: nginx, containerName: VALUE}]", "web", "web.main"),
    ("deployments: [{image: nginx, labels: {tier: VALUE}}]", "front-end", "front end"),
    ("deployments: [{image: nginx, podLabels: {VALUE: a}}]", "tier", "the tier"),
    ("deployments: [{image: nginx, annotations: {VALUE: a}}]", "note", "a note"),
    ("deployments: [{image: nginx, replicas: VALUE}]", "7", "-7"),
    ("deployments: [{image: nginx, imagePullPolicy: VALUE}]", "Always", "Allways"),
    ("deployments: [{image: nginx, resources: {limits: {memory: VALUE}}}]", "512M", "512MB"),
    ("statefulSets: [{image: nginx, serviceName: web, name: VALUE}]", "web", "web.main"),
    ("services: [{port: 80, name: VALUE}]", "web", "web.main"),
    ("services: [{port: 80, targetPort: VALUE}]", "web-port", "web_port"),
    ("configMaps: [{data: {VALUE: a}}]", "site-title", "site title"),
    ("secrets: [{stringData: {VALUE: a}}]", "site-title", "site/title"),
    ("cronJobs: [{image: nginx, schedule: VALUE}]", "'@hourly'", "hourly"),
    ("ingresses: [{host: VALUE}]", "example.com", "https://example.com"),
    ("ingresses: [{host: example.com, path: VALUE}]", "/shop", "shop"),
    ("ingresses: [{host: example.com, servicePort: VALUE}]", "80", "80800"),
    ("persistentVolumeClaims: [{storage: 1Gi, accessModes: [VALUE]}]", "ReadWriteOnce", "ReadwriteOnce"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("entry", "accepted", "refused"), REFUSED)
async def test_a_server_refuses_what_a_file_must_not_have(
    cluster: Cluster, entry: str, accepted: str, refused: str
) -> None:
    obj = load_resource(f"onReconcile: {{{entry.replace('VALUE', accepted)}}}").object
    good = json.loads(json.dumps(obj).replace("{{ metadata.name }}", "web"))
    old, new = yaml.safe_load(accepted), yaml.safe_load(refused)
    bad = json.loads(json.dumps(good).replace(json.dumps(old), json.dumps(new)))
    # After the replacement: the random name can contain the value.
    good["metadata"]["namespace"] = bad["metadata"]["namespace"] = cluster.namespace

    assert find_errors(f"onReconcile: {{{entry.replace('VALUE', refused)}}}") != []
    assert bad != good
    await cluster.client.apply(good, field_manager="box", dry_run=True)
    with pytest.raises((InvalidError, BadRequestError, ServerError)):  # the last one for a quantity
        await cluster.client.apply(bad, field_manager="box", dry_run=True)


@pytest.mark.anyio
async def test_a_server_refuses_a_mount_without_a_volume(cluster: Cluster) -> None:
    entry = "deployments: [{image: nginx, volumeMounts: [{name: date, mountPath: /data}], volumes: [VALUE]}]"
    volume = "{name: date, emptyDir: {}}"
    obj = load_resource(f"onReconcile: {{{entry.replace('VALUE', volume)}}}").object
    bad = json.loads(json.dumps(obj).replace("{{ metadata.name }}", "web"))
    bad["metadata"]["namespace"] = cluster.namespace
    bad["spec"]["template"]["spec"]["volumes"][0]["name"] = "data"

    (error,) = find_errors(f"onReconcile: {{{entry.replace('VALUE', volume.replace('date', 'data'))}}}")
    assert "volumeMounts[0].name: expected a volume of this Pod, found 'date'; did you mean data?" in error
    with pytest.raises(InvalidError):
        await cluster.client.apply(bad, field_manager="box", dry_run=True)
