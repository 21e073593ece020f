"""The floor of W1: five applies and one status write per parent, ten in parallel, without cache, watch or decoding.

It uses aiohttp and msgspec, like konverge, and of konverge itself only the objects that both write.
`python -m bench.w1.floor KUBECONFIG` runs it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.w1 import parents
from bench.w1.start_signal import wait_for_go

USER_AGENT = "w1-floor"
WORKERS = 10

_PARENTS = f"/apis/{parents.PARENT.api_version}"
_PLURALS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps/{}",
    "Secret": "/api/v1/namespaces/{}/secrets/{}",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts/{}",
    "Service": "/api/v1/namespaces/{}/services/{}",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments/{}",
}
_APPLY = {"content-type": "application/apply-patch+yaml"}
_JSON = {"content-type": "application/json"}


class _Floor:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def run(self) -> None:
        async with self._session.get(f"{_PARENTS}/parents") as answer:
            found: list[dict[str, Any]] = msgspec.json.decode(await answer.read())["items"]
        waiting = iter(found)
        async with asyncio.TaskGroup() as workers:
            for _ in range(WORKERS):
                workers.create_task(self._work(waiting))

    async def _work(self, waiting: Any) -> None:
        for parent in waiting:
            await self._write(parent)

    async def _write(self, parent: dict[str, Any]) -> None:
        name, namespace = parent["metadata"]["name"], parent["metadata"]["namespace"]
        reference = {
            "apiVersion": parents.PARENT.api_version,
            "kind": parents.PARENT.kind,
            "name": name,
            "uid": parent["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        for child in (
            parents.config(name, namespace, parent["spec"]["greeting"]),
            parents.secret(name, namespace),
            parents.account(name, namespace),
            parents.service(name, namespace),
            parents.deployment(name, namespace, parent["spec"]["image"]),
        ):
            child["metadata"]["ownerReferences"] = [reference]
            path = _PLURALS[child["kind"]].format(namespace, name)
            await self._send("PATCH", f"{path}?fieldManager=floor&force=true", _APPLY, child)
        parent["status"] = {"conditions": [_condition(name) for name in ("SettingsReady", "ApplicationReady", "Ready")]}
        del parent["metadata"]["managedFields"]
        path = f"{_PARENTS}/namespaces/{namespace}/parents/{name}/status"
        await self._send("PUT", path, _JSON, {"apiVersion": parents.PARENT.api_version, "kind": "Parent", **parent})

    async def _send(self, method: str, path: str, headers: dict[str, str], body: Any) -> None:
        async with self._session.request(method, path, data=msgspec.json.encode(body), headers=headers) as answer:
            text = await answer.read()
            if answer.status >= 400:
                raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")


def _condition(name: str) -> dict[str, Any]:
    return {
        "type": name,
        "status": "True",
        "reason": "Healthy",
        "message": "all resources are healthy",
        "observedGeneration": 1,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


async def main(read: dict[str, Any]) -> None:
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"authorization": f"Bearer {user['token']}", "user-agent": USER_AGENT, "accept": "application/json"}
    connector = aiohttp.TCPConnector(ssl=trusted)
    async with aiohttp.ClientSession(cluster["server"], connector=connector, headers=headers) as session:
        wait_for_go()
        await _Floor(session).run()
        await asyncio.Event().wait()  # keeps running while it is measured


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
