"""The operator of W1 as its author would write it; `python -m bench.w1.program KUBECONFIG [--events]` runs it.

Without ``--events`` it records no events: they would be additional requests, and the floor has none.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from bench.w1 import parents
from bench.w1.parents import Parent
from bench.w1.start_signal import wait_for_go
from konverge import Component, ComponentBuilder, Operator, prerequisites
from konverge._internal.client.connect import connect
from konverge._internal.primitives.generic_objects import Static
from konverge.operator import RunOptions
from konverge.primitives import ConfigMap, Deployment, Secret, Service

USER_AGENT = "w1-konverge"


def settings(parent: Parent) -> Component:
    name, namespace = parent.metadata.name, parent.metadata.namespace
    return (
        ComponentBuilder("settings", condition_type="SettingsReady")
        .with_resource(ConfigMap(parents.config(name, namespace, parent.spec.greeting)))
        .with_resource(Secret(parents.secret(name, namespace)))
        .build()
    )


def application(parent: Parent) -> Component:
    name, namespace = parent.metadata.name, parent.metadata.namespace
    return (
        ComponentBuilder("application", condition_type="ApplicationReady")
        .with_prerequisite(prerequisites.depends_on("SettingsReady"))
        .with_resource(Static(parents.account(name, namespace)))
        .with_resource(Service(parents.service(name, namespace)))
        .with_resource(Deployment(parents.deployment(name, namespace, parent.spec.image)))
        .build()
    )


operator = Operator("w1")
operator.manages(Parent, settings, application)


async def main(kubeconfig: str, *, records_events: bool = False) -> None:
    async with connect(kubeconfig, user_agent=USER_AGENT, env={}) as client:
        wait_for_go()
        await operator.run(client, RunOptions(records_events=records_events), stops_on_signals=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(sys.argv[1], records_events="--events" in sys.argv))
