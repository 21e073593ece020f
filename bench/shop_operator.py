"""A shop of ten objects, as a box and as an operator in Python with the same desired objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from konverge import Component, ComponentBuilder, Operator
from konverge.crd import Metadata, custom_resource
from konverge.kube import GroupVersionKind, Object
from konverge.primitives import (
    ConfigMap,
    Deployment,
    HorizontalPodAutoscaler,
    Ingress,
    PodDisruptionBudget,
    Role,
    RoleBinding,
    Secret,
    Service,
    ServiceAccount,
)

__all__ = ["BOX", "SHOP", "Shop", "new_shop", "python_operator"]

SHOP = GroupVersionKind("bench.konverge.dev", "v1", "Shop")

BOX = """
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata:
  name: shops
spec:
  crds:
    shop:
      resource:
        apiVersion: bench.konverge.dev/v1
        kind: Shop
        schema:
          spec:
            required: [image]
            properties:
              image: {type: string}
              replicas: {type: integer}
              tier: {type: string}
      normalize:
        spec: {tier: "{{ spec.tier | default('small') | toLower }}"}
      mutation:
        - {field: spec.replicas, default: 0}
      validation:
        - {field: spec.image, notSuffix: ":latest", message: name a version}
        - {field: spec.replicas, max: 10, action: warn, message: that is a lot}
      onReconcile:
        serviceAccounts: [{}]
        secrets: [{stringData: {url: "redis://{{ metadata.name }}"}}]
        configMaps: [{data: {image: "{{ spec.image }}", tier: "{{ spec.tier }}"}}]
        roles: [{rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}]
        roleBindings:
          - roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "{{ metadata.name }}"}
            subjects: [{kind: ServiceAccount, name: "{{ metadata.name }}", namespace: "{{ metadata.namespace }}"}]
        services: [{port: 80, targetPort: 8080}]
        deployments:
          - image: "{{ spec.image }}"
            replicas: "{{ spec.replicas }}"
            port: 8080
            env: {TIER: "{{ spec.tier }}", NAME: "{{ metadata.name }}"}
            resources: {requests: {cpu: 100m, memory: 64Mi}}
            when: [{field: spec.tier, in: [small, large]}]
        ingresses:
          - {host: "{{ metadata.name }}.example.com", serviceName: "{{ metadata.name }}", servicePort: 80}
        horizontalPodAutoscalers:
          - scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "{{ metadata.name }}"}
            minReplicas: 1
            maxReplicas: 3
            targetCPUUtilizationPercentage: 80
        podDisruptionBudgets: [{maxUnavailable: 1}]
      status:
        fields:
          - {path: ready, type: integer, value: "{{ children.deployment.status.readyReplicas | default(0) }}"}
"""


@dataclass
class ShopSpec:
    image: str
    replicas: int = 0
    tier: str = "small"


@custom_resource(group=SHOP.group, version=SHOP.version)
@dataclass
class Shop:
    """A shop with ten objects."""

    metadata: Metadata
    spec: ShopSpec


def new_shop(name: str, namespace: str) -> Object:
    """Return a shop as a user creates it."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": SHOP.api_version, "kind": SHOP.kind, "metadata": metadata, "spec": {"image": "shop:1"}}


def python_operator(begun: Callable[[], None] = lambda: None) -> Operator:
    """Return the operator in Python.

    Args:
        begun: Called at the start of each reconcile.
    """

    def shop(shop: Shop) -> Component:
        begun()
        return _component(shop)

    operator = Operator("python-shops")
    operator.manages(Shop, shop)
    return operator


def _component(shop: Shop) -> Component:
    name, namespace, spec = shop.metadata.name, shop.metadata.namespace, shop.spec
    labels = {"app.kubernetes.io/name": name}

    def build_named(**fields: object) -> Object:
        return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, **fields}

    container = {
        "name": "main",
        "image": spec.image,
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "TIER", "value": spec.tier.lower()}, {"name": "NAME", "value": name}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    selector = {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    path = {
        "path": "/",
        "pathType": "Prefix",
        "backend": {"service": {"name": name, "port": {"number": 80}}},
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    scaling = {
        "scaleTargetRef": target,
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    resources = (
        ServiceAccount(build_named()),
        Secret(build_named(stringData={"url": f"redis://{name}"})),
        ConfigMap(build_named(data={"image": spec.image, "tier": spec.tier.lower()})),
        Role(build_named(rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}])),
        RoleBinding(
            build_named(
                roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            )
        ),
        Service(build_named(spec={"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]})),
        Deployment(build_named(spec={"replicas": spec.replicas, "selector": selector, "template": template})),
        Ingress(build_named(spec={"rules": [{"host": f"{name}.example.com", "http": {"paths": [path]}}]})),
        HorizontalPodAutoscaler(build_named(spec=scaling)),
        PodDisruptionBudget(build_named(spec={"selector": selector, "maxUnavailable": 1})),
    )
    builder = ComponentBuilder("shop", condition_type="ShopReady")
    for resource in resources:
        builder = builder.with_resource(resource)
    return builder.build()
