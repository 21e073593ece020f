"""The objects of io.k8s.api.coordination.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, TypedDict

from konverge.types import meta_v1


class LeaseSpec(TypedDict, total=False):
    acquireTime: str
    holderIdentity: str
    leaseDurationSeconds: int
    leaseTransitions: int
    preferredHolder: str
    renewTime: str
    strategy: str


class Lease(TypedDict, total=False):
    apiVersion: Literal["coordination.k8s.io/v1"]
    kind: Literal["Lease"]
    metadata: meta_v1.ObjectMeta
    spec: LeaseSpec
