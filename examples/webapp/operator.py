"""An operator for web applications: settings, a store in the back, pages in front, and one condition for each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from konverge import BooleanGate, Component, ComponentBuilder, Object, Operator, options, prerequisites
from konverge.crd import Metadata, custom_resource
from konverge.mutation import Mutation, WorkloadMutator
from konverge.primitives import ConfigMap, Deployment, Secret, Service, StatefulSet


@dataclass
class WebAppSpec:
    image: str
    replicas: Annotated[int, Meta(ge=1, le=20)] = 2
    greeting: str = "Hello"
    tracing: bool = False
    suspended: bool = False


@custom_resource(group="demo.konverge.dev", version="v1alpha1", short_names=["wa"])
@dataclass
class WebApp:
    """A web application and the store behind it."""

    metadata: Metadata
    spec: WebAppSpec


def config(app: WebApp) -> Component:
    settings = {"metadata": build_object(app, "config"), "data": {"GREETING": app.spec.greeting}}
    return ComponentBuilder("config", condition_type="ConfigReady").with_resource(ConfigMap(settings)).build()


def backend(app: WebApp) -> Component:
    access = {
        "metadata": build_object(app, "backend"),
        "stringData": {"STORE_URL": f"redis://{app.metadata.name}-backend"},
    }
    return (
        ComponentBuilder("backend", condition_type="BackendReady")
        .with_resource(Secret(access))
        .with_resource(Service(service(app, "backend", port=6379)))
        .with_resource(StatefulSet(workload(app, "backend", image="redis:8", replicas=1)))
        .suspend(app.spec.suspended)
        .build()
    )


def frontend(app: WebApp) -> Component:
    tracing = BooleanGate(app.spec.tracing)
    sampling = {"metadata": build_object(app, "tracing"), "data": {"sampler": "parentbased_always_on"}}
    pages = workload(app, "frontend", image=app.spec.image, replicas=app.spec.replicas)
    return (
        ComponentBuilder("frontend", condition_type="FrontendReady")
        .with_prerequisite(prerequisites.depends_on("BackendReady"))
        .with_resource(ConfigMap(sampling), options.gated_by(tracing))
        .with_resource(Deployment(pages, mutations=Mutation("tracing", send_traces, gate=tracing)))
        .with_resource(Service(service(app, "frontend", port=80)))
        # An earlier operator gave the Service this name. The component does not own it: the deletion needs the option.
        .with_resource(Service(service(app, "web", port=80)), options.delete(even_if_not_ours=True))
        .with_grace_period(timedelta(seconds=8))
        .suspend(app.spec.suspended)
        .build()
    )


def send_traces(pods: WorkloadMutator) -> None:
    pods.ensure_container_env_var({"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4317"})


def build_object(app: WebApp, part: str) -> Object:
    labels = {"app.kubernetes.io/instance": app.metadata.name, "app.kubernetes.io/component": part}
    return {"name": f"{app.metadata.name}-{part}", "namespace": app.metadata.namespace, "labels": labels}


def service(app: WebApp, part: str, port: int) -> Object:
    metadata = build_object(app, part)
    return {"metadata": metadata, "spec": {"selector": metadata["labels"], "ports": [{"port": port}]}}


def workload(app: WebApp, part: str, image: str, replicas: int) -> Object:
    metadata = build_object(app, part)
    settings = {"configMapRef": {"name": f"{app.metadata.name}-config"}}
    pod = {"containers": [{"name": part, "image": image, "envFrom": [settings]}]}
    template = {"metadata": {"labels": metadata["labels"]}, "spec": pod}
    selector = {"matchLabels": metadata["labels"]}
    return {"metadata": metadata, "spec": {"replicas": replicas, "selector": selector, "template": template}}


operator = Operator("webapp")
operator.manages(WebApp, config, backend, frontend)
