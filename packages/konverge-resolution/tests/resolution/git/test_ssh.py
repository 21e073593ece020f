"""Repositories over ssh, from OpenSSH's own server: with the key and the host keys of a Secret, and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from konverge_resolution import Reason, ResolutionError, ResolvedContent
from tests.resolution.git.sample_repositories import SampleRepositories, build_fetch, list_files, resolve
from tests.resolution.servers.ssh import SshServer, ssh_server

pytestmark = pytest.mark.anyio

HOST = "git.test"


@pytest.fixture(scope="session")
def ssh() -> Iterator[SshServer]:
    with ssh_server() as server:
        yield server


async def resolve_file(
    ssh: SshServer, samples: SampleRepositories, folder: Path, secret: Mapping[str, bytes], **params: str
) -> ResolvedContent:
    url = f"ssh://{ssh.user}@{HOST}:{ssh.port}{samples.root}/boxes.git"
    given = {"url": url, "pathInRepo": "box.yaml", "gitSSHSecret": "key", **params}
    return await resolve(build_fetch(folder, given, settings={"allow-ssh": "true"}, secrets={"key": secret}))


def new_key(folder: Path, passphrase: str = "", *options: str) -> bytes:
    """A private key that no server knows."""
    made = ["ssh-keygen", "-q", "-t", "ed25519", *options, "-N", passphrase, "-f", str(folder / "new-key")]
    subprocess.run(made, check=True, capture_output=True)
    return (folder / "new-key").read_bytes()


@pytest.mark.slow
async def test_a_file_is_read_with_a_key_from_a_host_that_is_known(
    ssh: SshServer, samples: SampleRepositories, folder: Path
) -> None:
    secret = {"ssh-privatekey": ssh.private_key, "known_hosts": ssh.format_known_hosts(HOST)}
    resolved = await resolve_file(ssh, samples, folder, secret)
    assert resolved.source.digest == {"sha1": samples.commit}
    assert resolved.source.uri == f"git+ssh://{HOST}:{ssh.port}{samples.root}/boxes.git"
    assert list_files(folder) == ["lock"]


@pytest.mark.slow
async def test_a_host_that_is_not_known_is_refused(ssh: SshServer, samples: SampleRepositories, folder: Path) -> None:
    secret = {"ssh-privatekey": ssh.private_key, "known_hosts": ssh.format_known_hosts("other.test")}
    with pytest.raises(ResolutionError) as caught:
        await resolve_file(ssh, samples, folder, secret)
    assert (caught.value.reason, "host key" in caught.value.message) == (Reason.DENIED, True)


async def test_a_key_that_is_not_accepted_is_refused(ssh: SshServer, samples: SampleRepositories, folder: Path) -> None:
    secret = {"ssh-privatekey": new_key(folder.parent), "known_hosts": ssh.format_known_hosts(HOST)}
    with pytest.raises(ResolutionError) as caught:
        await resolve_file(ssh, samples, folder, secret)
    assert (caught.value.reason, "rejects the credential" in caught.value.message) == (Reason.DENIED, True)


@pytest.mark.slow
async def test_a_key_that_ssh_cannot_read_is_told_apart_from_one_that_is_not_accepted(
    ssh: SshServer, samples: SampleRepositories, folder: Path
) -> None:
    locked = new_key(folder.parent, "sesame")
    (folder.parent / "pem").mkdir()
    locked_pem = new_key(folder.parent / "pem", "sesame", "-m", "PKCS8", "-t", "rsa")
    for key, message in [
        (b"no key", "found something else"),
        (locked, "found one with a passphrase"),
        (locked_pem, "found one with a passphrase"),
        (ssh.private_key.replace(b"\nb", b"\n").replace(b"AA", b"A", 1), "damaged"),
    ]:
        with pytest.raises(ResolutionError) as caught:
            await resolve_file(
                ssh, samples, folder, {"ssh-privatekey": key, "known_hosts": ssh.format_known_hosts(HOST)}
            )
        assert (caught.value.reason, message in caught.value.message) == (Reason.INVALID_PARAMETERS, True)


@pytest.mark.slow
async def test_a_repository_that_does_not_exist_is_not_found(
    ssh: SshServer, samples: SampleRepositories, folder: Path
) -> None:
    secret = {"ssh-privatekey": ssh.private_key, "known_hosts": ssh.format_known_hosts(HOST)}
    with pytest.raises(ResolutionError) as caught:
        await resolve_file(ssh, samples, folder, secret, url=f"ssh://{ssh.user}@{HOST}:{ssh.port}/none.git")
    assert caught.value.reason is Reason.NOT_FOUND


async def test_a_secret_without_host_keys_is_refused(ssh: SshServer, samples: SampleRepositories, folder: Path) -> None:
    with pytest.raises(ResolutionError, match="known_hosts"):
        await resolve_file(ssh, samples, folder, {"ssh-privatekey": ssh.private_key})
