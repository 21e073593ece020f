from __future__ import annotations

import json
from pathlib import Path

import pytest

from konverge._internal.apply import Schema, build_custom_resource_schema
from konverge.clock import SystemClock, SystemEntropy
from konverge.errors import ApiError
from konverge_cluster.controlplane import RealCluster
from tests.apply.server_comparison import ServerComparison
from tests.apply.widgets import WIDGET_SCHEMA, WIDGETS

_DEADLINE_SECONDS = 30


class ComparisonServer:
    """The real API server, and a namespace on it."""

    def __init__(self, url: str, token: str, namespace: str) -> None:
        self._url = url
        self._token = token
        self.namespace = namespace

    def new_comparison(self, group_version: str, plural: str, schema: Schema | None = None) -> ServerComparison:
        """Return the comparison for an object of the namespace that does not exist yet.

        Args:
            group_version: The group and version in a URL path, for example ``apis/apps/v1``.
            plural: The plural, for example ``deployments``.
            schema: The schema of a custom resource.
        """
        name = f"t-{SystemEntropy().name_suffix(8)}"
        path = f"/{group_version}/namespaces/{self.namespace}/{plural}/{name}"
        return ServerComparison(self._url, self._token, path, schema)

    def compare_path(self, path: str) -> ServerComparison:
        """Return the comparison for one object by its whole path."""
        return ServerComparison(self._url, self._token, path)


@pytest.fixture(scope="session")
def server(real_control_plane: RealCluster) -> ComparisonServer:
    """The server with a namespace for these tests and the definition of widgets, which it serves."""
    kubeconfig = json.loads(Path(real_control_plane.kubeconfig).read_text())
    token: str = kubeconfig["users"][0]["user"]["token"]
    made = ComparisonServer(real_control_plane.url, token, f"apply-{SystemEntropy().name_suffix(8)}")
    root = made.compare_path("")
    root.request("POST", "/api/v1/namespaces", {"metadata": {"name": made.namespace}})
    root.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
    _wait_until_served(root, made.namespace)
    return made


def _wait_until_served(root: ServerComparison, namespace: str) -> None:
    probe = f"/apis/apply.konverge.test/v1/namespaces/{namespace}/widgets/probe"
    body = {"apiVersion": "apply.konverge.test/v1", "kind": "Widget", "metadata": {"name": "probe"}, "spec": {}}
    deadline = SystemClock().monotonic() + _DEADLINE_SECONDS
    while True:
        try:
            root.request("PATCH", f"{probe}?fieldManager=probe&dryRun=All", body, "application/apply-patch+yaml")
        except ApiError:
            if SystemClock().monotonic() > deadline:
                raise
        else:
            return


@pytest.fixture
def widgets(server: ComparisonServer) -> ServerComparison:
    return server.new_comparison("apis/apply.konverge.test/v1", "widgets", build_custom_resource_schema(WIDGET_SCHEMA))


@pytest.fixture
def deployments(server: ComparisonServer) -> ServerComparison:
    return server.new_comparison("apis/apps/v1", "deployments")


@pytest.fixture
def stateful_sets(server: ComparisonServer) -> ServerComparison:
    return server.new_comparison("apis/apps/v1", "statefulsets")


@pytest.fixture
def services(server: ComparisonServer) -> ServerComparison:
    return server.new_comparison("api/v1", "services")


@pytest.fixture
def config_maps(server: ComparisonServer) -> ServerComparison:
    return server.new_comparison("api/v1", "configmaps")


@pytest.fixture
def secrets(server: ComparisonServer) -> ServerComparison:
    return server.new_comparison("api/v1", "secrets")
