"""A ward that the operator of `wards` has looked after for a while, on either cluster, and the command line over it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio.to_thread
import yaml

from konverge.crd import find_definition
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cli.stuck_operator import Ward, operator

FILE = Path(__file__).parent / "stuck_operator.py"
WARD = find_definition(Ward).gvk
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")
_KINDS = (WARD, DEPLOYMENT, CONFIG_MAP, SECRET, GroupVersionKind("", "v1", "Service"))


@dataclass
class StuckOwner:
    """A ward named ``east``."""

    cluster: Cluster
    konverge: Callable[..., subprocess.CompletedProcess[str]]
    started_konverge: Callable[..., subprocess.CompletedProcess[str]]
    kubeconfig: Path
    folder: Path

    async def run(
        self,
        command: str,
        *arguments: str,
        file: Path = FILE,
        kubeconfig: Path | None = None,
        is_started: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """A command over the ward, or what the arguments name instead; started as a user does, or forked."""
        konverge = self.started_konverge if is_started else self.konverge
        told = (command, file, *(arguments or ("ward/east",)), "--kubeconfig", kubeconfig or self.kubeconfig)
        return await anyio.to_thread.run_sync(
            lambda: konverge(*told, *([] if "-n" in arguments else ["-n", self.cluster.namespace]))
        )

    async def run_operator(self) -> None:
        """Let the operator run until nothing but the stuck parts is left."""
        async with self.cluster.run_operator(operator):
            for type, reason in (
                ("SettingsReady", "Healthy"),
                ("PagesReady", "Creating"),
                ("MailReady", "Blocked"),
                ("SearchReady", "PrerequisiteNotMet"),
            ):
                status = "True" if reason == "Healthy" else "False"
                await self.cluster.wait_for_condition(WARD, "east", type=type, status=status, reason=reason)
            await self.cluster.eventually(self._is_observed, describe="the pages' controller has seen them")

    async def force_settings(self) -> None:
        """Have another writer force the settings its own way."""
        metadata = {"name": "east-settings", "namespace": self.cluster.namespace}
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "red"}}
        await self.cluster.client.apply(wanted, field_manager="painter")

    async def heal_settings(self) -> None:
        """Let the operator run until it has the settings its own way again."""
        key = ObjectKey(self.cluster.namespace, "east-settings")

        async def is_healed() -> bool:
            return bool((await self.cluster.client.get(CONFIG_MAP, key))["data"]["colour"] == "blue")

        async with self.cluster.run_operator(operator):
            await self.cluster.eventually(is_healed, describe="the operator takes its field back")

    async def _is_observed(self) -> bool:
        found = await self.cluster.client.get(DEPLOYMENT, ObjectKey(self.cluster.namespace, "east-pages"))
        return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])

    async def change(self, **spec: Any) -> None:
        """Have somebody edit the ward."""
        await self.cluster.client.patch(
            WARD, ObjectKey(self.cluster.namespace, "east"), {"spec": spec}, patch_type="merge"
        )

    def list_verbs(self, command: str) -> set[str]:
        """What a command has asked of the server; discovery reads too."""
        user_agent = f"konverge/{version('konverge')} ({command})"
        return {request.verb for request in self.cluster.list_requests(user_agent)}

    async def write_restricted_kubeconfig(self) -> Path:
        """The kubeconfig of somebody who may read wards and nothing else."""
        group, name = "rbac.authorization.k8s.io", {"name": "reader", "namespace": self.cluster.namespace}
        user = {"kind": "User", "name": "ward-reader", "apiGroup": group}
        rule = {"apiGroups": [WARD.group], "resources": ["wards"], "verbs": ["get"]}
        for kind, rest in (
            ("Role", {"rules": [rule]}),
            ("RoleBinding", {"roleRef": {"kind": "Role", "name": "reader", "apiGroup": group}, "subjects": [user]}),
        ):
            await self.cluster.client.create({"apiVersion": f"{group}/v1", "kind": kind, "metadata": name, **rest})
        config = yaml.safe_load(self.kubeconfig.read_text())
        for each in config["users"]:
            each["user"]["as"] = "ward-reader"
        file = self.folder / "reader"
        file.write_text(yaml.safe_dump(config))
        return file

    def write_owner_file(self, **spec: Any) -> Path:
        """A file with the ward."""
        file = self.folder / "ward.yaml"
        file.write_text(yaml.safe_dump(ward(self.cluster.namespace, **spec)))
        return file

    async def list_versions(self) -> Sequence[tuple[str, str]]:
        """Every object that a pass might touch, with its version."""
        found = []
        for gvk in _KINDS:
            async for obj in self.cluster.client.items(gvk, namespace=self.cluster.namespace):
                found.append((f"{gvk} {obj['metadata']['name']}", obj["metadata"]["resourceVersion"]))
        return sorted(found)


def ward(namespace: str, **spec: Any) -> Object:
    """A ward named ``east``."""
    metadata = {"name": "east", "namespace": namespace}
    return {"apiVersion": WARD.api_version, "kind": WARD.kind, "metadata": metadata, "spec": spec}
