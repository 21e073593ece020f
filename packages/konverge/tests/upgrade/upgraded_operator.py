"""Two versions of one operator: the second breaks what an upgrade can break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from konverge import Component, ComponentBuilder, Operator
from konverge.crd import CelRule, Metadata, custom_resource
from konverge.primitives import ConfigMap, Deployment, Secret

GROUP = "upgrade.konverge.test"


@dataclass
class OldSpec:
    replicas: Annotated[int, msgspec.Meta(ge=0, le=10)] = 1
    size: str = "small"
    note: str | None = None


@dataclass
class NewSpec:
    replicas: Annotated[int, msgspec.Meta(ge=0, le=5)] = 1
    size: str = "small"
    theme: str = "light"


@dataclass
class TitledSpec:
    title: str = ""


@custom_resource(group=GROUP, version="v1", kind="App")
@dataclass
class OldApp:
    metadata: Metadata
    spec: OldSpec


@custom_resource(
    group=GROUP, version="v1", kind="App", rules=(CelRule("self.spec.size != 'huge'", message="no huge ones"),)
)
@dataclass
class NewApp:
    metadata: Metadata
    spec: NewSpec


def _metadata(app: Any) -> dict[str, Any]:
    return {"name": app.metadata.name, "namespace": app.metadata.namespace}


def _deployment(app: Any, label: str) -> dict[str, Any]:
    labels = {"app": label}
    containers = [{"name": "main", "image": "konverge.test/app:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "metadata": _metadata(app),
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def old_settings(app: OldApp) -> Component:
    return (
        ComponentBuilder("settings", condition_type="SettingsReady")
        .with_resource(ConfigMap({"metadata": _metadata(app), "data": {"size": app.spec.size}}))
        .build()
    )


def old_server(app: OldApp) -> Component:
    return (
        ComponentBuilder("server", condition_type="ServerReady")
        .with_resource(Deployment(_deployment(app, "old")))
        .build()
    )


def new_settings(app: Any) -> Component:
    return (
        ComponentBuilder("settings", condition_type="SettingsReady")
        .with_resource(
            ConfigMap({"metadata": _metadata(app), "data": {"size": app.spec.size, "theme": app.spec.theme}})
        )
        .with_resource(Secret({"metadata": _metadata(app), "stringData": {"password": "swordfish"}}))
        .build()
    )


def title(app: Any) -> Component:
    return (
        ComponentBuilder("settings", condition_type="SettingsReady")
        .with_resource(ConfigMap({"metadata": _metadata(app), "data": {"title": app.spec.title}}))
        .build()
    )


def new_server(app: NewApp) -> Component:
    return (
        ComponentBuilder("server", condition_type="ServerReady")
        .with_resource(Deployment(_deployment(app, "new")))
        .build()
    )


old = Operator("apps")
old.manages(OldApp, old_settings, old_server)

new = Operator("apps")
new.manages(NewApp, new_settings, new_server)
