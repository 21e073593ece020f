"""The objects of io.k8s.api.networking.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import core_v1, meta_v1


class ServiceBackendPort(TypedDict, total=False):
    name: str
    number: int


class IngressServiceBackend(TypedDict, total=False):
    name: Required[str]
    port: ServiceBackendPort


class IngressBackend(TypedDict, total=False):
    resource: core_v1.TypedLocalObjectReference
    service: IngressServiceBackend


class HTTPIngressPath(TypedDict, total=False):
    backend: Required[IngressBackend]
    path: str
    pathType: Required[Literal["Exact", "ImplementationSpecific", "Prefix"]]


class HTTPIngressRuleValue(TypedDict, total=False):
    paths: Required[list[HTTPIngressPath]]


class ParentReference(TypedDict, total=False):
    group: str
    name: Required[str]
    namespace: str
    resource: Required[str]


class IPAddressSpec(TypedDict, total=False):
    parentRef: Required[ParentReference]


class IPAddress(TypedDict, total=False):
    apiVersion: Literal["networking.k8s.io/v1"]
    kind: Literal["IPAddress"]
    metadata: meta_v1.ObjectMeta
    spec: Required[IPAddressSpec]


IPBlock = TypedDict(
    "IPBlock",
    {
        "cidr": Required[str],
        "except": list[str],
    },
    total=False,
)


class IngressRule(TypedDict, total=False):
    host: str
    http: HTTPIngressRuleValue


class IngressTLS(TypedDict, total=False):
    hosts: list[str]
    secretName: str


class IngressSpec(TypedDict, total=False):
    defaultBackend: IngressBackend
    ingressClassName: str
    rules: list[IngressRule]
    tls: list[IngressTLS]


class IngressPortStatus(TypedDict, total=False):
    error: str
    port: Required[int]
    protocol: Required[Literal["SCTP", "TCP", "UDP"]]


class IngressLoadBalancerIngress(TypedDict, total=False):
    hostname: str
    ip: str
    ports: list[IngressPortStatus]


class IngressLoadBalancerStatus(TypedDict, total=False):
    ingress: list[IngressLoadBalancerIngress]


class IngressStatus(TypedDict, total=False):
    loadBalancer: IngressLoadBalancerStatus


class Ingress(TypedDict, total=False):
    apiVersion: Literal["networking.k8s.io/v1"]
    kind: Literal["Ingress"]
    metadata: meta_v1.ObjectMeta
    spec: IngressSpec
    status: IngressStatus


class IngressClassParametersReference(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]
    namespace: str
    scope: str


class IngressClassSpec(TypedDict, total=False):
    controller: str
    parameters: IngressClassParametersReference


class IngressClass(TypedDict, total=False):
    apiVersion: Literal["networking.k8s.io/v1"]
    kind: Literal["IngressClass"]
    metadata: meta_v1.ObjectMeta
    spec: IngressClassSpec


class NetworkPolicyPeer(TypedDict, total=False):
    ipBlock: IPBlock
    namespaceSelector: meta_v1.LabelSelector
    podSelector: meta_v1.LabelSelector


class NetworkPolicyPort(TypedDict, total=False):
    endPort: int
    port: int | str
    protocol: Literal["SCTP", "TCP", "UDP"]


class NetworkPolicyEgressRule(TypedDict, total=False):
    ports: list[NetworkPolicyPort]
    to: list[NetworkPolicyPeer]


NetworkPolicyIngressRule = TypedDict(
    "NetworkPolicyIngressRule",
    {
        "from": list[NetworkPolicyPeer],
        "ports": list[NetworkPolicyPort],
    },
    total=False,
)


class NetworkPolicySpec(TypedDict, total=False):
    egress: list[NetworkPolicyEgressRule]
    ingress: list[NetworkPolicyIngressRule]
    podSelector: meta_v1.LabelSelector
    policyTypes: list[Literal["Egress", "Ingress"]]


class NetworkPolicy(TypedDict, total=False):
    apiVersion: Literal["networking.k8s.io/v1"]
    kind: Literal["NetworkPolicy"]
    metadata: meta_v1.ObjectMeta
    spec: NetworkPolicySpec


class ServiceCIDRSpec(TypedDict, total=False):
    cidrs: list[str]


class ServiceCIDRStatus(TypedDict, total=False):
    conditions: list[meta_v1.Condition]


class ServiceCIDR(TypedDict, total=False):
    apiVersion: Literal["networking.k8s.io/v1"]
    kind: Literal["ServiceCIDR"]
    metadata: meta_v1.ObjectMeta
    spec: ServiceCIDRSpec
    status: ServiceCIDRStatus
