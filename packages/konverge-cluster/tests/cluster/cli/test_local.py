"""`konverge local`: a cluster in the background, addressed by name."""

from __future__ import annotations

import json
import os
import shlex
import signal
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from konverge._internal.client.config import ClusterConfig
from konverge._internal.client.connect import connect
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_cluster._internal.cli.cluster_instances import ClusterInstance
from konverge_cluster.controlplane import find_binaries
from tests.cli.conftest import Konverge

pytestmark = pytest.mark.embedded

NAMESPACE = GroupVersionKind("", "v1", "Namespace")


@pytest.fixture
def instance(home: Path) -> ClusterInstance:
    return ClusterInstance("default", home / ".local/state/konverge/clusters")


@pytest.fixture
def up(konverge: Konverge) -> Iterator[subprocess.CompletedProcess[str]]:
    """Start a cluster, and stop it at the end."""
    yield konverge("local", "up")
    konverge("local", "down")


def kubeconfig_in(line: str) -> Path:
    """Return the file from a line for a shell."""
    export, assignment = shlex.split(line)
    assert export == "export"
    return Path(assignment.removeprefix("KUBECONFIG="))


@pytest.mark.slow
@pytest.mark.anyio
async def test_what_up_and_env_print_leads_to_the_cluster(
    konverge: Konverge, up: subprocess.CompletedProcess[str]
) -> None:
    assert (up.returncode, konverge("local", "env").stdout) == (0, up.stdout), up.stderr

    async with connect(kubeconfig_in(up.stdout), env={}) as client:
        found = await client.get(NAMESPACE, ObjectKey("", "default"))

    assert found["metadata"]["name"] == "default"


@pytest.mark.slow
def test_it_listens_on_loopback_alone(up: subprocess.CompletedProcess[str]) -> None:
    assert "https://127.0.0.1:" in up.stderr


async def status(config: ClusterConfig, path: str, **headers: str) -> int:
    """Return the status code for a client that trusts the server's certificate."""
    context = ssl.create_default_context(cadata=config.tls.authority.decode())
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{config.server}{path}", ssl=context, headers=headers) as answer,
    ):
        return answer.status


def token_in(file: Path) -> str:
    (user,) = json.loads(file.read_text())["users"]
    return str(user["user"]["token"])


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/api/v1/secrets", "/api", "/version", "/healthz", "/nowhere"])
async def test_who_shows_no_token_or_a_wrong_one_is_answered_401(
    path: str, up: subprocess.CompletedProcess[str]
) -> None:
    config = load_kubeconfig(kubeconfig_in(up.stdout), env={})

    assert await status(config, path) == 401
    assert await status(config, path, authorization="Bearer nonsense") == 401
    assert await status(config, path, authorization="Basic YTpi") == 401
    assert await status(config, path, authorization=f"Bearer {token_in(kubeconfig_in(up.stdout))}") != 401


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_certificate_is_nobody_elses_and_there_is_no_http_beside_it(
    up: subprocess.CompletedProcess[str],
) -> None:
    url = load_kubeconfig(kubeconfig_in(up.stdout), env={}).server

    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{url}/version")
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await session.get(f"{url.replace('https', 'http')}/version")


@pytest.mark.slow
def test_each_start_has_a_token_of_its_own_that_only_the_kubeconfig_has(
    konverge: Konverge, up: subprocess.CompletedProcess[str], instance: ClusterInstance
) -> None:
    tokens = []
    for _ in range(2):
        tokens.append(token_in(instance.kubeconfig))
        assert instance.kubeconfig.stat().st_mode & 0o777 == 0o600
        others = [file for file in instance.folder.iterdir() if file != instance.kubeconfig]
        assert not [file for file in others if tokens[-1].encode() in file.read_bytes()]
        konverge("local", "down")
        konverge("local", "up")

    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 32


@pytest.mark.slow
def test_permission_bits_of_a_kubeconfig_that_is_there_are_kept_and_told_of(
    konverge: Konverge, up: subprocess.CompletedProcess[str], instance: ClusterInstance
) -> None:
    konverge("local", "down")
    instance.kubeconfig.chmod(0o640)

    again = konverge("local", "up")

    assert instance.kubeconfig.stat().st_mode & 0o777 == 0o640
    assert "other users of this machine can read it" in again.stderr
    assert "others" not in up.stderr


@pytest.mark.slow
@pytest.mark.anyio
async def test_an_insecure_one_is_open_and_is_asked_for_by_name(konverge: Konverge) -> None:
    opened = konverge("local", "up", "--insecure")
    try:
        secured = konverge("local", "up")
        config = load_kubeconfig(kubeconfig_in(opened.stdout), env={})
        async with connect(kubeconfig_in(opened.stdout), env={}) as client:
            found = await client.get(NAMESPACE, ObjectKey("", "default"))
    finally:
        konverge("local", "down")

    assert found["metadata"]["name"] == "default"
    assert config.server.startswith("http://127.0.0.1:")
    assert secured.returncode == 3
    assert "is running already, and it is without TLS and token" in secured.stderr


@pytest.mark.slow
def test_without_the_library_for_certificates_it_says_what_to_install(
    started_konverge: Konverge, tmp_path: Path
) -> None:
    (tmp_path / "cryptography").mkdir()
    (tmp_path / "cryptography" / "__init__.py").write_text("raise ImportError('not installed')\n")

    up = started_konverge("local", "up", PYTHONPATH=str(tmp_path))
    insecure = started_konverge("local", "up", "--insecure", PYTHONPATH=str(tmp_path))
    started_konverge("local", "down")

    assert up.returncode == 3
    assert "pip install 'konverge[local]', or start with --insecure" in up.stderr
    assert insecure.returncode == 0, insecure.stderr


@pytest.mark.real
def test_kubectl_works_with_the_kubeconfig_and_with_nothing_less(
    up: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    kubectl = [str(find_binaries() / "kubectl"), f"--cache-dir={tmp_path}"]
    environment = {"KUBECONFIG": str(kubeconfig_in(up.stdout)), "HOME": str(tmp_path)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*kubectl, *arguments], env=environment, capture_output=True, text=True, check=False)

    made = run("create", "configmap", "menu", "--from-literal=soup=leek")
    read = run("get", "configmap", "menu", "-o", "jsonpath={.data.soup}")
    who = run("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    unauthenticated = run("--token=nonsense", "get", "configmaps")

    assert made.returncode == 0, made.stderr
    assert (read.stdout, who.stdout) == ("leek", "konverge-admin")
    assert (unauthenticated.returncode, "Unauthorized" in unauthenticated.stderr) == (1, True)


@pytest.mark.slow
def test_up_again_finds_the_running_one(konverge: Konverge, up: subprocess.CompletedProcess[str]) -> None:
    again = konverge("local", "up")

    assert (again.returncode, again.stdout, again.stderr) == (0, up.stdout, up.stderr)


@pytest.mark.slow
def test_the_other_kind_under_the_same_name_is_refused(
    konverge: Konverge, up: subprocess.CompletedProcess[str]
) -> None:
    other = konverge("local", "up", "--real")

    assert other.returncode == 3
    assert "running already, and it is embedded" in other.stderr


@pytest.mark.slow
def test_down_ends_the_server_and_forgets_it(
    konverge: Konverge, up: subprocess.CompletedProcess[str], instance: ClusterInstance
) -> None:
    was_held = instance.is_locked

    down = konverge("local", "down")

    assert (down.returncode, was_held, instance.is_locked) == (0, True, False)
    assert konverge("local", "env").returncode == 3


def test_down_without_a_cluster_is_done_already(started_konverge: Konverge) -> None:
    down = started_konverge("local", "down")

    assert (down.returncode, down.stderr) == (0, 'cluster "default" was not running\n')


@pytest.mark.slow
def test_after_a_kill_it_starts_anew(
    konverge: Konverge, up: subprocess.CompletedProcess[str], instance: ClusterInstance
) -> None:
    record = instance.read_record()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)

    again = konverge("local", "up")

    assert again.returncode == 0, again.stderr


@pytest.mark.slow
def test_two_names_are_two_clusters(konverge: Konverge, up: subprocess.CompletedProcess[str]) -> None:
    second = konverge("local", "up", "--name", "second")

    assert konverge("local", "down", "--name", "second").returncode == 0
    assert kubeconfig_in(second.stdout) != kubeconfig_in(up.stdout)
    assert konverge("local", "env").returncode == 0


def test_capabilities_prints_what_the_embedded_cluster_lacks(konverge: Konverge) -> None:
    table = konverge("local", "capabilities").stdout
    listed = json.loads(konverge("local", "capabilities", "-o", "json").stdout)

    assert {"area": "Subresources", "subject": "pods/exec (v1)", "effect": "not served: 404"} in listed
    assert all(limitation["subject"] in table and limitation["effect"] in table for limitation in listed)
