"""Bring one Site of the README up to date, once: python reconcile_once.py KUBECONFIG NAMESPACE/NAME."""

from __future__ import annotations

import asyncio
import sys

from konverge import Component, ComponentBuilder, GroupVersionKind, Object, ObjectKey, ReconcileContext
from konverge.client import connect
from konverge.primitives import Deployment

SITE = GroupVersionKind("example.com", "v1alpha1", "Site")


def web(site: Object) -> Component:
    metadata = {"name": site["metadata"]["name"], "namespace": site["metadata"]["namespace"]}
    labels = {"site": metadata["name"]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": site["spec"]["image"]}]}}
    spec = {"replicas": site["spec"]["replicas"], "selector": {"matchLabels": labels}, "template": pod}
    deployment = Deployment({"metadata": metadata, "spec": spec})
    return ComponentBuilder("web", condition_type="WebReady").with_resource(deployment).build()


async def main(kubeconfig: str, name: str) -> str:
    namespace, _, name = name.partition("/")
    async with connect(kubeconfig, user_agent="reconcile-once") as client:
        site = await client.get(SITE, ObjectKey(namespace, name))
        ctx = ReconcileContext(client=client, owner=site)
        async with ctx.flushing_status():
            condition = await web(site).reconcile(ctx)
    return f"{condition.type} is {condition.status} ({condition.reason}): {condition.message}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python reconcile_once.py KUBECONFIG NAMESPACE/NAME")
    print(asyncio.run(main(*sys.argv[1:])))
