"""The objects of io.k8s.api.scheduling.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, TypedDict

from konverge.types import meta_v1


class PriorityClass(TypedDict, total=False):
    apiVersion: Literal["scheduling.k8s.io/v1"]
    kind: Literal["PriorityClass"]
    metadata: meta_v1.ObjectMeta
    description: str
    globalDefault: bool
    preemptionPolicy: Literal["Never", "PreemptLowerPriority"]
    value: int
