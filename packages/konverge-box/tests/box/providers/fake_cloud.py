"""A fake external service that generates identifiers, its provider, and an owner to write to."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from konverge.clock import SimulatedClock
from konverge.errors import ConflictError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_box._internal.file import ProviderSettings, load_box
from konverge_box._internal.steps import Scope
from konverge_box._internal.steps.scope import build_scope
from konverge_box.expressions import EvaluationEnvironment, Sensitive, to_sensitive
from konverge_box.providers import (
    ForeignError,
    ItemKind,
    ItemRequest,
    ItemResult,
    PendingDeletion,
    ProviderLimits,
    ProviderPool,
    ProviderRegistry,
    ProvidersStep,
    ReconcileRequest,
)

WHERE = "spec.crds.shop.providers"


class SimulatedCrash(BaseException):
    """The exception that ends the process."""


class StepCounter:
    """A counter of steps that ends the process at the step of a given number."""

    def __init__(self, crash_at: int = -1) -> None:
        self.crash_at = crash_at
        self.taken = 0

    def __call__(self) -> None:
        self.taken += 1
        if self.taken - 1 == self.crash_at:
            raise SimulatedCrash


class Settings(Struct, rename="camel", forbid_unknown_fields=True):
    region: str = "here"
    password: Sensitive | None = None


class MachineSpec(Struct, rename="camel", forbid_unknown_fields=True):
    size: int = 1
    zone: str = "a"
    password: Sensitive | None = None


class DiskSpec(Struct, rename="camel", forbid_unknown_fields=True):
    size: int = 1


class FakeCloud:
    """The service: machines by their generated identifiers. A crash can also follow one of its actions."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.steps = StepCounter()
        self._next = 0

    def create(self, **fields: Any) -> str:
        self.steps()
        self._next += 1
        self.things[f"i-{self._next}"] = fields
        self.writes += 1
        self.steps()
        return f"i-{self._next}"

    def change(self, identifier: str, **fields: Any) -> None:
        self.steps()
        self.things[identifier].update(fields)
        self.writes += 1
        self.steps()

    def delete(self, identifier: str) -> None:
        self.steps()
        self.things.pop(identifier, None)
        self.writes += 1
        self.steps()

    def names(self) -> list[str]:
        return sorted(f"{thing['kind']} {thing['name']}" for thing in self.things.values())


class FakeCloudProvider:
    """The provider of machines and disks."""

    settings: type[Struct] = Settings
    kinds: Mapping[str, ItemKind] = {
        "Machine": ItemKind(MachineSpec, identity=("zone",)),
        "Disk": ItemKind(DiskSpec, on_delete="retain"),
    }

    def __init__(self, cloud: FakeCloud, name: str = "cloud") -> None:
        self.name = name
        self.cloud = cloud
        self.calls: list[str] = []
        self.during: Callable[[ItemRequest], Any] | None = None
        self.slow_deletes = 0
        """The number of calls in which a deletion is still in progress."""
        self.closed = False

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        self.calls.append(f"reconcile {request.kind} {request.name}")
        await self._during(request)
        wanted = {"size": request.spec.size}
        if getattr(request.spec, "password", None) is not None:
            wanted["password"] = request.spec.password.reveal()
        found = self._find(request)
        if found is None:
            found = self.cloud.create(kind=request.kind, name=request.name, owner=request.owner.uid,
                                      token=request.token, **wanted)  # fmt: skip
        elif {**self.cloud.things[found], **wanted} != self.cloud.things[found]:
            self.cloud.change(found, **wanted)
        await SimulatedClock().sleep(0)  # one turn of the loop, like a request
        return ItemResult(outputs={"id": found, "secret": to_sensitive("s3cr3t-output")}, handle=found)

    async def delete(self, request: ItemRequest) -> PendingDeletion | None:
        self.calls.append(f"{request.on_delete} {request.kind} {request.name}")
        await self._during(request)
        found = self._find(request)
        if found is not None and request.on_delete == "delete":
            if self.slow_deletes:
                self.slow_deletes -= 1
                return PendingDeletion(f"{found} shuts down")
            self.cloud.delete(found)
        elif found is not None:
            self.cloud.change(found, owner="")
        return None

    async def close(self) -> None:
        self.closed = True

    def _find(self, request: ItemRequest) -> str | None:
        for identifier, thing in self.cloud.things.items():
            if thing["token"] == request.token:
                return identifier
            if thing["kind"] == request.kind and thing["name"] == request.name and thing["owner"] == "foreign":
                if isinstance(request, ReconcileRequest):
                    raise ForeignError(f"machine {request.name}", thing["owner"], request.owner.uid)
                return None
        return None

    async def _during(self, request: ItemRequest) -> None:
        if self.during is not None:
            result = self.during(request)
            if result is not None:
                await result


GVK = GroupVersionKind("test.konverge.dev", "v1", "Shop")


class FakeOwner:
    """The owner on the server and its Secrets, which reads and writes like the client of a reconcile."""

    def __init__(self, spec: Mapping[str, Any], name: str = "web", uid: str = "uid-1") -> None:
        metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "1", "generation": 1}
        self.stored: Object = {"apiVersion": GVK.api_version, "kind": GVK.kind, "metadata": metadata, "spec": spec}
        self.secrets: dict[ObjectKey, dict[str, str]] = {}
        self.reads: list[ObjectKey] = []
        self.patches = 0
        self.steps = StepCounter()

    def read(self) -> Object:
        copy: Object = msgspec.json.decode(msgspec.json.encode(self.stored))
        return copy

    async def patch(self, gvk: GroupVersionKind, key: ObjectKey, body: Any, *, patch_type: str) -> Object:
        assert (gvk, key, patch_type) == (GVK, ObjectKey.of(self.stored), "merge")
        body = msgspec.json.decode(msgspec.json.encode(body))  # only JSON values, without sensitive ones
        self.steps()
        metadata = self.stored["metadata"]
        if body["metadata"].get("resourceVersion") != metadata["resourceVersion"]:
            raise ConflictError("the object has been modified")
        annotations = {**metadata.get("annotations", {}), **body["metadata"]["annotations"]}
        metadata["annotations"] = {name: text for name, text in annotations.items() if text is not None}
        self.touch()
        self.patches += 1
        self.steps()
        return self.read()

    def touch(self) -> None:
        metadata = self.stored["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        assert gvk.kind == "Secret"
        self.reads.append(key)
        if key not in self.secrets:
            raise NotFoundError(f"no Secret {key}")
        return {"data": {name: base64.b64encode(text.encode()).decode() for name, text in self.secrets[key].items()}}

    def annotation(self) -> list[dict[str, Any]]:
        written = self.stored["metadata"].get("annotations", {}).get("konverge.dev/providers", "[]")
        found: list[dict[str, Any]] = msgspec.json.decode(written)
        return found

    def scope(self) -> Scope:
        return build_scope(self.read(), EvaluationEnvironment(now=SimulatedClock().now()))

    async def list(self, gvk: GroupVersionKind, **_: Any) -> Any:
        raise AssertionError("providers list nothing")


def build_providers(
    items: str, pool: ProviderPool, settings: str = "", *, required: bool = True, name: str = "cloud"
) -> ProvidersStep:
    """Compile the step of a file with these items, one on each line. Loading the file checks them."""
    listed = "\n".join(f"          - {line}" for line in items.strip().splitlines())
    text = f"""
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata: {{name: shops}}
spec:
  providers:
    {name}: {{required: {str(required).lower()}{", " if settings else ""}{settings}}}
  crds:
    shop:
      resource: {{apiVersion: {GVK.api_version}, kind: {GVK.kind}}}
      providers:
        {name}:{" []" if not listed.strip(" -") else ""}
{listed if listed.strip(" -") else ""}
"""
    box = load_box(text, file="shops.yaml")
    found: Mapping[str, ProviderSettings] = box.spec.providers
    return ProvidersStep(box.spec.crds["shop"].providers, found, WHERE, pool)


def build_pool(*providers: FakeCloudProvider, **limits: Any) -> ProviderPool:
    return ProviderPool(ProviderRegistry.from_providers(providers), ProviderLimits(**limits))
