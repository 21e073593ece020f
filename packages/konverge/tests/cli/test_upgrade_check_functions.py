"""`konverge upgrade-check` for functions of an author: their access is that which `konverge rbac` observes."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import pytest
import yaml

from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge

pytestmark = [pytest.mark.anyio, pytest.mark.real_time, pytest.mark.slow]

OPERATOR = """
from dataclasses import dataclass
from konverge import Metadata, Operator, custom_resource
from konverge.kube import GroupVersionKind


@dataclass
class ShopSpec:
    theme: str = "light"


@custom_resource(group="functions.konverge.test", version="v1")
@dataclass
class Shop:
    metadata: Metadata
    spec: ShopSpec


operator = Operator("shops")


@operator.reconciles(Shop)
async def reconcile(shop, ctx):
    await ctx.cluster.list(GroupVersionKind("", "v1", "ConfigMap"), namespace=shop.metadata.namespace)
"""


async def test_the_roles_of_rbac_are_those_that_the_check_expects(
    cluster: Cluster, konverge: Konverge, tmp_path: Path
) -> None:
    file, config = tmp_path / "shops.py", await cluster.write_kubeconfig()
    file.write_text(OPERATOR)
    account = f"{cluster.namespace}/shops"
    options = ("--account", account, "--namespace", cluster.namespace)
    printed = await anyio.to_thread.run_sync(lambda: konverge("rbac", file, *options))
    definitions = await anyio.to_thread.run_sync(lambda: konverge("crd", file))
    await cluster.install(*yaml.safe_load_all(definitions.stdout))
    for manifest in yaml.safe_load_all(printed.stdout):
        await cluster.client.apply(manifest, field_manager="test")

    done = await anyio.to_thread.run_sync(lambda: konverge("upgrade-check", file, *options, "--kubeconfig", config))

    assert "configmaps" in printed.stdout
    assert "    sufficient\n" in done.stdout
    assert "no longer needed" not in done.stdout
    assert done.returncode == 0
