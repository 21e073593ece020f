"""Repositories over ssh, from OpenSSH's own server: with the key and the host keys of a Secret, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from konverge.resolution import Reason, ResolutionError, Resolved
from tests.resolution.git.samples import Samples, fetch_of, files_in, resolve
from tests.resolution.servers.ssh import SshServer, ssh_server

pytestmark = pytest.mark.anyio

HOST = "git.test"


@pytest.fixture(scope="module")
def ssh() -> Iterator[SshServer]:
    with ssh_server() as server:
        yield server


async def got(ssh: SshServer, samples: Samples, folder: Path, secret: Mapping[str, bytes], **params: str) -> Resolved:
    url = f"ssh://{ssh.user}@{HOST}:{ssh.port}{samples.root}/boxes.git"
    given = {"url": url, "pathInRepo": "box.yaml", "gitSSHSecret": "key", **params}
    return await resolve(fetch_of(folder, given, settings={"allow-ssh": "true"}, secrets={"key": secret}))


async def test_a_file_is_read_with_a_key_from_a_host_that_is_known(
    ssh: SshServer, samples: Samples, folder: Path
) -> None:
    secret = {"ssh-privatekey": ssh.private_key, "known_hosts": ssh.known_hosts(HOST)}
    resolved = await got(ssh, samples, folder, secret)
    assert resolved.source.digest == {"sha1": samples.commit}
    assert resolved.source.uri == f"git+ssh://{HOST}:{ssh.port}{samples.root}/boxes.git"
    assert files_in(folder) == ["lock"]


async def test_a_host_that_is_not_known_is_refused(ssh: SshServer, samples: Samples, folder: Path) -> None:
    secret = {"ssh-privatekey": ssh.private_key, "known_hosts": ssh.known_hosts("other.test")}
    with pytest.raises(ResolutionError) as caught:
        await got(ssh, samples, folder, secret)
    assert (caught.value.reason, "host key" in caught.value.message) == (Reason.DENIED, True)


async def test_a_key_that_is_not_accepted_is_refused(ssh: SshServer, samples: Samples, folder: Path) -> None:
    secret = {"ssh-privatekey": b"no key", "known_hosts": ssh.known_hosts(HOST)}
    with pytest.raises(ResolutionError) as caught:
        await got(ssh, samples, folder, secret)
    assert (caught.value.reason, "refuses the credential" in caught.value.message) == (Reason.DENIED, True)


async def test_a_repository_that_does_not_exist_is_not_found(ssh: SshServer, samples: Samples, folder: Path) -> None:
    secret = {"ssh-privatekey": ssh.private_key, "known_hosts": ssh.known_hosts(HOST)}
    with pytest.raises(ResolutionError) as caught:
        await got(ssh, samples, folder, secret, url=f"ssh://{ssh.user}@{HOST}:{ssh.port}/none.git")
    assert caught.value.reason is Reason.NOT_FOUND


async def test_a_secret_without_host_keys_is_refused(ssh: SshServer, samples: Samples, folder: Path) -> None:
    with pytest.raises(ResolutionError, match="known_hosts"):
        await got(ssh, samples, folder, {"ssh-privatekey": ssh.private_key})
