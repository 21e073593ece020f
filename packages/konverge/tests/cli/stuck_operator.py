"""An operator whose components get stuck in different ways."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from konverge import Component, ComponentBuilder, Object, Operator
from konverge.crd import Metadata, custom_resource
from konverge.mutation import Mutation
from konverge.options import block_on_absence, delete, read_only
from konverge.prerequisites import depends_on
from konverge.primitives import ConfigMap, Data, Deployment, Secret, Service


@dataclass
class WardSpec:
    image: str = "konverge.test/never-ready:1"
    colour: str = "blue"
    password: str = "hunter2"
    broken: bool = False


@custom_resource(group="wards.konverge.test", version="v1", short_names=["wd"])
@dataclass
class Ward:
    """Something to look after."""

    metadata: Metadata
    spec: WardSpec


def build_metadata(ward: Ward, part: str) -> Object:
    return {"name": f"{ward.metadata.name}-{part}", "namespace": ward.metadata.namespace}


def settings(ward: Ward) -> Component:
    """Which a second writer wants otherwise."""
    values = {"metadata": build_metadata(ward, "settings"), "data": {"colour": ward.spec.colour}}
    access = {"metadata": build_metadata(ward, "access"), "stringData": {"password": ward.spec.password}}
    return (
        ComponentBuilder("settings", condition_type="SettingsReady")
        .with_resource(ConfigMap(values, mutations=Mutation("check", check(ward))))
        .with_resource(Secret(access))
        .with_resource(ConfigMap({"metadata": build_metadata(ward, "old")}), delete())
        .build()
    )


def check(ward: Ward):  # type: ignore[no-untyped-def]
    def refuse(_: object) -> None:
        if ward.spec.broken:
            raise ValueError("the author's own mistake")

    return refuse


def pages(ward: Ward) -> Component:
    """Which have grace."""
    labels = {"app": ward.metadata.name}
    container = {"name": "main", "image": ward.spec.image}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return (
        ComponentBuilder("pages", condition_type="PagesReady")
        .with_resource(Deployment({"metadata": build_metadata(ward, "pages"), "spec": spec}))
        .with_resource(Service({"metadata": build_metadata(ward, "pages"), "spec": {"ports": [{"port": 80}]}}))
        .with_grace_period(timedelta(hours=1))
        .build()
    )


def mail(ward: Ward) -> Component:
    """Which waits for somebody else's object."""
    relay: Data[str] = Data("relay")
    account = ConfigMap(
        {"metadata": build_metadata(ward, "account")},
        extract=relay.fill_with(lambda live: live.get("data", {}).get("relay")),
    )
    outbox = {"metadata": build_metadata(ward, "outbox"), "data": {"size": "10"}}
    return (
        ComponentBuilder("mail", condition_type="MailReady")
        .with_resource(account, read_only(), block_on_absence())
        .with_resource(ConfigMap(outbox, requires=relay))
        .with_resource(Service({"metadata": build_metadata(ward, "mail"), "spec": {"ports": [{"port": 25}]}}))
        .build()
    )


def search(ward: Ward) -> Component:
    """Which waits for the pages."""
    return (
        ComponentBuilder("search", condition_type="SearchReady")
        .with_prerequisite(depends_on("PagesReady"))
        .with_resource(ConfigMap({"metadata": build_metadata(ward, "index")}))
        .build()
    )


operator = Operator("wards")
operator.manages(Ward, settings, pages, mail, search)
