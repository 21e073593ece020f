"""Where requests are filed and fulfilled: a cluster with the kinds, and what tests look at."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from konverge.crd import crd_manifest
from konverge.errors import NotFoundError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import Operator, RunOptions
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from konverge_cluster.testing import Cluster
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolver import Services
from konverge_resolution.requests import (
    REQUEST,
    TEKTON_REQUEST,
    ResolutionPolicy,
    ResolutionRequest,
    build_resolution_operator,
)

EMBEDDED = pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
"""For what no API server has a part in; each real one costs everybody's time."""

REAL = pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
POLICY = GroupVersionKind("resolution.konverge.dev", "v1alpha1", "ResolutionPolicy")

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

TEKTON_DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "resolutionrequests.resolution.tekton.dev"},
    "spec": {
        "group": "resolution.tekton.dev",
        "scope": "Namespaced",
        "names": {"kind": "ResolutionRequest", "plural": "resolutionrequests", "singular": "resolutionrequest"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "params": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "required": ["name", "value"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "value": {"x-kubernetes-preserve-unknown-fields": True},
                                            },
                                        },
                                    },
                                    "url": {"type": "string"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "required": ["data", "refSource", "source"],
                                "properties": {
                                    "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "conditions": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "required": ["status", "type"],
                                            "properties": {
                                                name: {"type": "string"}
                                                for name in (
                                                    "lastTransitionTime",
                                                    "message",
                                                    "reason",
                                                    "severity",
                                                    "status",
                                                    "type",
                                                )
                                            },
                                        },
                                    },
                                    "data": {"type": "string"},
                                    "observedGeneration": {"type": "integer", "format": "int64"},
                                    "refSource": _ANYTHING,
                                    "source": _ANYTHING,
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


@dataclass
class RequestNamespace:
    """A namespace in which requests are filed; it is the operator's own namespace besides."""

    cluster: Cluster

    @property
    def namespace(self) -> str:
        return self.cluster.namespace

    @property
    def late_seconds(self) -> float:
        """How much later than in simulated time things may happen: a machine with a real cluster may be busy."""
        return 30.0 if self.cluster.name == "real" else 0.0

    def services(self, requester: Requester, admission: PolicyDecision) -> Services:
        nothing: Any = None
        return Services(http=nothing, secrets=nothing, workspaces=nothing, clock=self.cluster.clock)

    def operator(self, *resolvers: Any, **more: Any) -> Operator:
        return build_resolution_operator(resolvers, home=self.namespace, **{"services_for": self.services, **more})

    @asynccontextmanager
    async def running_resolvers(
        self, *resolvers: Any, options: RunOptions | None = None, **more: Any
    ) -> AsyncIterator[None]:
        async with self.cluster.run_operator(self.operator(*resolvers, **more), options):
            yield

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def create_request(
        self, name: str, resolver: str = "shelf", *, owner: Object | None = None, **spec: Any
    ) -> Object:
        """File a request by hand, as anybody may."""
        params = {"url": f"https://a.example/{name}", **spec.pop("params", {})}
        request: Object = {
            "apiVersion": REQUEST.api_version,
            "kind": REQUEST.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"resolver": resolver, "params": params, **spec},
        }
        if owner is not None:
            request["metadata"]["ownerReferences"] = [
                {name: owner[name] for name in ("apiVersion", "kind")}
                | {name: owner["metadata"][name] for name in ("name", "uid")}
            ]
        return await self.cluster.client.create(request)

    async def create_tekton_request(
        self, name: str, resolver: str | None, params: Mapping[str, Any], **spec: Any
    ) -> Object:
        """File a request as Tekton's documentation shows them."""
        return await self.cluster.client.create(
            {
                "apiVersion": TEKTON_REQUEST.api_version,
                "kind": TEKTON_REQUEST.kind,
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "labels": {} if resolver is None else {"resolution.tekton.dev/type": resolver},
                },
                "spec": {"params": [{"name": name, "value": value} for name, value in params.items()], **spec},
            }
        )

    async def get(self, name: str, gvk: GroupVersionKind = REQUEST) -> Object:
        return await self.cluster.client.get(gvk, self.key(name))

    async def condition(self, name: str, gvk: GroupVersionKind = REQUEST) -> Condition | None:
        return find_condition(await self.get(name, gvk), "Succeeded")

    async def wait_until_ended(self, name: str, gvk: GroupVersionKind = REQUEST, *, within: float = 30.0) -> Object:
        """The request, as soon as it has ended."""

        async def find_ended() -> Object | None:
            request = await self.get(name, gvk)
            condition = find_condition(request, "Succeeded")
            return request if condition is not None and condition.status in ("True", "False") else None

        within += self.late_seconds
        return await self.cluster.eventually(find_ended, timeout_seconds=within, describe=f"request {name} ends")

    async def wait_for_failure(self, name: str, gvk: GroupVersionKind = REQUEST, *, within: float = 30.0) -> Condition:
        """The condition of a request, as soon as it has failed."""
        condition = find_condition(await self.wait_until_ended(name, gvk, within=within), "Succeeded")
        assert condition is not None
        assert condition.status == "False", condition
        return condition

    async def wait_until_pending(self, *names: str) -> None:
        async def are_pending() -> bool:
            found = [await self.condition(name) for name in names]
            return all(each is not None and each.reason == "ResolutionInProgress" for each in found)

        await self.cluster.eventually(are_pending, 15 + self.late_seconds, describe="requests are in progress")

    async def wait_until_gone(self, name: str, gvk: GroupVersionKind = REQUEST, *, within: float = 30.0) -> None:
        async def is_gone() -> bool:
            try:
                await self.get(name, gvk)
            except NotFoundError:
                return True
            return False

        await self.cluster.eventually(is_gone, timeout_seconds=within, describe=f"{name} is gone")

    async def set_config_map(self, name: str, **data: str) -> None:
        """Set a ConfigMap up; underscores in keys stand for dashes."""
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": {key.replace("_", "-"): value for key, value in data.items()},
        }
        await self.cluster.client.apply(config_map, field_manager="admin", force=True)

    @asynccontextmanager
    async def policy(self, name: str, **spec: Any) -> AsyncIterator[None]:
        """Have a policy for this namespace within the block; policies are everybody's."""
        full_name = f"{self.namespace}-{name}"
        body = {
            "apiVersion": POLICY.api_version,
            "kind": POLICY.kind,
            "metadata": {"name": full_name},
            "spec": {"namespaces": [self.namespace], **spec},
        }
        await self.cluster.client.create(body)
        try:
            yield
        finally:
            await self.cluster.client.delete(POLICY, ObjectKey("", full_name))

    async def events(self, name: str) -> list[Object]:
        listed = await self.cluster.client.list(EVENT, namespace=self.namespace)
        return [event for event in listed.items if event["regarding"]["name"] == name]

    async def wait_for_events(self, name: str, *reasons: str) -> list[Object]:
        async def are_there() -> list[Object] | None:
            found = await self.events(name)
            return found if sorted(event["reason"] for event in found) == sorted(reasons) else None

        return await self.cluster.eventually(are_there, describe=f"events on {name}: {', '.join(reasons)}")

    def status_writes(self, name: str, agent: str = "konverge-resolution") -> list[AuditedRequest]:
        end = f"/resolutionrequests/{name}/status"
        return [request for request in self.cluster.list_requests(agent) if request.path.endswith(end)]


async def create_request_namespace(cluster: Cluster, *, with_tekton: bool = False) -> RequestNamespace:
    definitions = [crd_manifest(ResolutionRequest), crd_manifest(ResolutionPolicy)]
    await cluster.install(*definitions, *([TEKTON_DEFINITION] if with_tekton else []))
    return RequestNamespace(cluster)


def decode_data(request: Object) -> bytes:
    return base64.b64decode(request["status"]["data"])
