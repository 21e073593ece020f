"""The objects of io.k8s.api.node.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import core_v1, meta_v1


class Overhead(TypedDict, total=False):
    podFixed: dict[str, meta_v1.Quantity]


class Scheduling(TypedDict, total=False):
    nodeSelector: dict[str, str]
    tolerations: list[core_v1.Toleration]


class RuntimeClass(TypedDict, total=False):
    apiVersion: Literal["node.k8s.io/v1"]
    kind: Literal["RuntimeClass"]
    metadata: meta_v1.ObjectMeta
    handler: Required[str]
    overhead: Overhead
    scheduling: Scheduling
