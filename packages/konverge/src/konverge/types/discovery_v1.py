"""The objects of io.k8s.api.discovery.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import core_v1, meta_v1


class EndpointConditions(TypedDict, total=False):
    ready: bool
    serving: bool
    terminating: bool


class ForNode(TypedDict, total=False):
    name: Required[str]


class ForZone(TypedDict, total=False):
    name: Required[str]


class EndpointHints(TypedDict, total=False):
    forNodes: list[ForNode]
    forZones: list[ForZone]


class Endpoint(TypedDict, total=False):
    addresses: Required[list[str]]
    conditions: EndpointConditions
    deprecatedTopology: dict[str, str]
    hints: EndpointHints
    hostname: str
    nodeName: str
    targetRef: core_v1.ObjectReference
    zone: str


class EndpointPort(TypedDict, total=False):
    appProtocol: str
    name: str
    port: int
    protocol: Literal["SCTP", "TCP", "UDP"]


class EndpointSlice(TypedDict, total=False):
    apiVersion: Literal["discovery.k8s.io/v1"]
    kind: Literal["EndpointSlice"]
    metadata: meta_v1.ObjectMeta
    addressType: Required[Literal["FQDN", "IPv4", "IPv6"]]
    endpoints: list[Endpoint]
    ports: list[EndpointPort]
