"""The Pod's own credentials, and their selection."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge._internal.client.credentials import TokenFile
from konverge._internal.client.in_cluster import is_in_cluster
from konverge.client import load_cluster_config, load_in_cluster
from konverge.errors import ConfigurationError

ENV = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the kubelet mounts."""
    for name, content in (("token", "t"), ("ca.crt", "authority"), ("namespace", "work\n")):
        (tmp_path / name).write_text(content)
    return tmp_path


def test_all_is_where_the_kubelet_puts_it(folder: Path) -> None:
    found = load_in_cluster(ENV, folder=folder)

    assert (found.server, found.namespace, found.tls.authority) == ("https://10.0.0.1:6443", "work", b"authority")
    assert isinstance(found.credentials, TokenFile)


def test_an_ipv6_address_is_put_in_brackets(folder: Path) -> None:
    assert load_in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, folder=folder).server == "https://[fd00::1]:443"


def test_outside_of_a_pod_it_says_so(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not run in a Pod"):
        load_in_cluster({}, folder=folder)


def test_a_pod_without_a_token_is_told_why(tmp_path: Path) -> None:
    assert not is_in_cluster(ENV, tmp_path)
    with pytest.raises(ConfigurationError, match="automountServiceAccountToken"):
        load_in_cluster(ENV, folder=tmp_path)


def test_a_pod_uses_its_own_credentials_unless_a_kubeconfig_is_there(folder: Path) -> None:
    kubeconfig = folder / "config"
    kubeconfig.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://c'}}], contexts: [{name: x, context: {cluster: c}}], "
        "current-context: x}"
    )
    own = load_cluster_config(env=ENV, service_account_folder=folder)
    of_environment = load_cluster_config(env={**ENV, "KUBECONFIG": str(kubeconfig)}, service_account_folder=folder)
    named = load_cluster_config(kubeconfig, env=ENV, service_account_folder=folder)

    assert [own.server, of_environment.server, named.server] == ["https://10.0.0.1:6443", "http://c", "http://c"]
