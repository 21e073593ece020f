"""Components under kopf: kopf hears of changes and retries, konverge applies, judges and writes conditions.

Run it with: kopf run examples/with_kopf/webapp.py --all-namespaces
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import kopf

from konverge import (
    Component,
    ComponentBuilder,
    Metadata,
    Object,
    ObjectKey,
    ReconcileContext,
    custom_resource,
    prerequisites,
)
from konverge.client import connect
from konverge.component import AppliedCache, aggregate
from konverge.crd import crd_manifest, decode, find_definition
from konverge.errors import KindNotServedError, NotFoundError, TerminalError
from konverge.primitives import ConfigMap, Deployment, Service, StatefulSet

# kopf does not hear of the objects that a WebApp owns: a timer looks after them.
INTERVAL_SECONDS = float(os.environ.get("WEBAPP_INTERVAL_SECONDS", "30"))
LONGEST_DELAY_SECONDS = 60
USER_AGENT = "webapp-on-kopf"


@dataclass
class WebAppSpec:
    image: str
    store: str = "redis:8"
    replicas: int = 1
    grace: timedelta = timedelta(minutes=5)
    suspended: bool = False


@custom_resource(group="kopf.example.com", version="v1")
@dataclass
class WebApp:
    metadata: Metadata
    spec: WebAppSpec


WEBAPP = find_definition(WebApp).gvk
WEBAPPS = find_definition(WebApp).name


def backend(app: WebApp) -> Component:
    settings = {"metadata": build_object(app, "settings"), "data": {"STORE": f"{app.metadata.name}-backend"}}
    return (
        ComponentBuilder("backend", condition_type="BackendReady")
        .with_resource(ConfigMap(settings))
        .with_resource(StatefulSet(workload(app, "backend", app.spec.store, 1)))
        .with_grace_period(app.spec.grace)
        .suspend(app.spec.suspended)
        .build()
    )


def frontend(app: WebApp) -> Component:
    labels = build_object(app, "frontend")["labels"]
    service = {"metadata": build_object(app, "frontend"), "spec": {"selector": labels, "ports": [{"port": 80}]}}
    return (
        ComponentBuilder("frontend", condition_type="FrontendReady")
        .with_prerequisite(prerequisites.depends_on("BackendReady"))
        .with_resource(Deployment(workload(app, "frontend", app.spec.image, app.spec.replicas)))
        .with_resource(Service(service))
        .with_grace_period(app.spec.grace)
        .suspend(app.spec.suspended)
        .build()
    )


def build_object(app: WebApp, part: str) -> Object:
    labels = {"webapp": app.metadata.name, "part": part}
    return {"name": f"{app.metadata.name}-{part}", "namespace": app.metadata.namespace, "labels": labels}


def workload(app: WebApp, part: str, image: str, replicas: int) -> Object:
    metadata = build_object(app, part)
    pod = {"metadata": {"labels": metadata["labels"]}, "spec": {"containers": [{"name": part, "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": metadata["labels"]}, "template": pod}
    return {"metadata": metadata, "spec": spec}


@kopf.on.startup()
async def open_client(memo: kopf.Memo, **_: Any) -> None:
    memo.client = connect(user_agent=USER_AGENT)
    memo.applied = AppliedCache()
    await memo.client.apply(crd_manifest(WebApp), field_manager=USER_AGENT)


@kopf.on.startup()
async def wait_for_definition(memo: kopf.Memo, **_: Any) -> None:
    # kopf looks for its kinds when the startup ends, and can miss one that is served a moment later.
    try:
        await memo.client.mapping(WEBAPP)
    except KindNotServedError as error:
        raise kopf.TemporaryError(str(error), delay=1) from error


@kopf.on.cleanup()
async def close_client(memo: kopf.Memo, **_: Any) -> None:
    await memo.client.close()


# The first run of a timer is at once, so there is no need of on.create and on.resume. Nor of on.delete: what a WebApp
# owns goes with it, and kopf takes the finalizer away that it sets for the timer.
@kopf.on.update(WEBAPPS, field="spec")
@kopf.timer(WEBAPPS, interval=INTERVAL_SECONDS)
async def reconcile(namespace: str | None, name: str | None, memo: kopf.Memo, retry: int = 0, **_: Any) -> None:
    # A timer runs beside the other handlers of its object; two passes at once would undo each other's conditions.
    async with memo.setdefault("lock", asyncio.Lock()):
        try:
            wake_after = await run_pass(ObjectKey(namespace or "", name or ""), memo)
        except Exception as error:
            raise as_kopf_error(error, retry) from error
    if wake_after is not None and wake_after.total_seconds() < INTERVAL_SECONDS:
        raise kopf.TemporaryError("the grace of a component ends", delay=wake_after.total_seconds())


async def run_pass(key: ObjectKey, memo: kopf.Memo) -> timedelta | None:
    try:
        owner = await memo.client.get(WEBAPP, key)  # what kopf hands over may be older than the last status write
    except NotFoundError:
        return None
    if "deletionTimestamp" in owner["metadata"]:
        return None
    ctx = ReconcileContext(client=memo.client, owner=owner, events=Events(), applied_cache=memo.applied)
    async with ctx.flushing_status():
        app = decode(WebApp, owner)
        components = [backend(app), frontend(app)]
        try:
            for component in components:
                await component.reconcile(ctx)
        finally:
            ctx.stage(aggregate("Ready", owner, components))
    return ctx.requeue_after


def as_kopf_error(error: Exception, retry: int) -> Exception:
    """Return an error that kopf retries after a growing delay, or only after a change of the spec."""
    if isinstance(error, TerminalError):
        return kopf.PermanentError(str(error))
    return kopf.TemporaryError(str(error), delay=min(2**retry, LONGEST_DELAY_SECONDS))


class Events:
    """Lets kopf post the events of components."""

    def event(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        kopf.event(kopf.Body(cast(kopf.RawBody, owner)), type="Normal", reason=reason, message=message)

    def warning(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        kopf.event(kopf.Body(cast(kopf.RawBody, owner)), type="Warning", reason=reason, message=message)
