"""Fixtures: an owner of components on the embedded and on the real cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from konverge.errors import AlreadyExistsError, NotFoundError
from konverge_cluster.testing import Cluster
from tests.component.app import APP, APP_CRD, ComponentHarness


@pytest.fixture
async def new_app(cluster: Cluster) -> Callable[[str], Any]:
    """Creates an owner of that name."""
    with contextlib.suppress(AlreadyExistsError):
        await cluster.client.create(APP_CRD)

    async def create(name: str) -> ComponentHarness:
        app = ComponentHarness(cluster, name)
        obj = {
            "apiVersion": APP.api_version,
            "kind": APP.kind,
            "metadata": {"name": name, "namespace": app.key.namespace},
        }

        async def created() -> bool:
            try:
                await cluster.client.create({**obj, "spec": {}})
            except NotFoundError:  # the CustomResourceDefinition is not served yet
                return False
            return True

        await cluster.eventually(created, describe="the custom resource can be created")
        return app

    return create


@pytest.fixture
async def app(new_app: Callable[[str], Any]) -> ComponentHarness:
    """An owner named ``shop``."""
    created: ComponentHarness = await new_app("shop")
    return created
