"""``konverge local``: an embedded or real cluster on this machine that outlives the command.

``up`` starts a second process with ``--foreground``, which is the server of the cluster, and waits until the
`InstanceRecord` reports that the server is ready. ``down`` stops the server by its process id.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import click

from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.signals import abort_on_event, stop_event_on_signal
from konverge._internal.runtime.certificate_watcher import CERTIFICATE_FILE, KEY_FILE
from konverge.clock import Clock, SystemClock, SystemEntropy
from konverge.errors import ConfigurationError, KonvergeError
from konverge_cluster._internal.cli.cluster_instances import ClusterInstance, InstanceRecord
from konverge_cluster._internal.cli.kubeconfig_file import build_kubeconfig, write_kubeconfig

__all__ = ["local"]

_START_SECONDS = 120.0  # for the real cluster; the embedded cluster takes one or two
_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.05
_LOG_TAIL_BYTES = 4_000
_OF_OTHERS = 0o077


@click.group()
def local() -> None:
    """Start and stop a cluster on this machine.

    The embedded cluster is an API server with its controllers in one Python process. The real cluster is a
    kube-apiserver with etcd and its controllers (see "make control-plane"). Both listen only on loopback.
    """


def _parse_instance(_ctx: click.Context, _parameter: click.Parameter, name: str) -> ClusterInstance:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise click.BadParameter(f"{name!r}: expected lower case letters, digits and '-'")
    return ClusterInstance(name)


_name_option = click.option(
    "--name", "instance", default="default", show_default=True, callback=_parse_instance, help="Name of the cluster."
)


@local.command()
@click.option("--real", is_flag=True, help="Run a real kube-apiserver instead of the embedded cluster.")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="Port of the embedded cluster (default: a free port)."
)
@click.option(
    "--kubeconfig",
    "kubeconfig_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the kubeconfig (default: a file in the directory of the cluster).",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Serve the embedded cluster without TLS and token; every user of this machine has full access.",
)
@click.option("--foreground", is_flag=True, help="Stay in the foreground until Ctrl-C.")
@_name_option
@verbose_option
def up(
    real: bool, port: int, kubeconfig_file: Path | None, insecure: bool, foreground: bool, instance: ClusterInstance
) -> None:
    """Start a cluster and wait until it is ready.

    The cluster serves HTTPS with a self-signed certificate and requires a token. The kubeconfig contains both.
    """
    if real and port:
        raise click.UsageError("--port is for the embedded cluster; the real one takes a free port")
    if real and insecure:
        raise click.UsageError("--insecure is for the embedded cluster; the real one always has TLS and certificates")
    kind = "real" if real else "embedded"
    file = kubeconfig_file.absolute() if kubeconfig_file else instance.kubeconfig
    if foreground:
        asyncio.run(_run_server(instance, kind, port, file, insecure=insecure))
        return
    record = instance.read_record() or _start_server(instance, kind, port, file, insecure=insecure)
    if record.kind != kind:
        raise ConfigurationError(
            f'the cluster "{instance.name}" is running already, and it is {record.kind}: '
            f"stop it with {instance.format_command('down')}, or choose another --name"
        )
    if record.url.startswith("http:") != insecure:
        mode = "without TLS and token" if not insecure else "with TLS and a token"
        raise ConfigurationError(
            f'the cluster "{instance.name}" is running already, and it is {mode}: '
            f"stop it with {instance.format_command('down')}, or choose another --name"
        )
    click.echo(f'cluster "{instance.name}" ({record.kind}) is up at {record.url}', err=True)
    if not insecure and Path(record.kubeconfig).stat().st_mode & _OF_OTHERS:
        click.echo(
            f"konverge: {record.kubeconfig}: other users of this machine can read it and use the cluster; "
            "run chmod 600",
            err=True,
        )
    click.echo(_format_export(record))


@local.command()
@_name_option
@verbose_option
def down(instance: ClusterInstance) -> None:
    """Stop a cluster and delete everything in it."""
    if asyncio.run(_stop_server(instance)):
        click.echo(f'cluster "{instance.name}" is down', err=True)
    else:
        click.echo(f'cluster "{instance.name}" was not running', err=True)


@local.command()
@_name_option
@verbose_option
def env(instance: ClusterInstance) -> None:
    """Print the shell command that selects the cluster for kubectl.

    For a shell: eval "$(konverge local env)"
    """
    record = instance.read_record()
    if record is None:
        raise ConfigurationError(
            f'no cluster "{instance.name}" is running: start it with {instance.format_command("up")}'
        )
    click.echo(_format_export(record))


@local.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    show_default=True,
    help="Format of the list.",
)
@verbose_option
def capabilities(output: str) -> None:
    """List what a real cluster has and the embedded cluster lacks.

    The list is collected from the code of this version. Areas: kinds and subresources that are not served, controllers
    that are not simulated, fields without effect, parts of admission and of custom resources.
    """
    from konverge_cluster._internal.embedded.limitations.limitation_list import format_limitations, list_limitations

    found = list_limitations()
    if output == "json":
        click.echo(json.dumps([limitation._asdict() for limitation in found], indent=2))
    else:
        click.echo(format_limitations(found, markdown=output == "markdown"))


def _format_export(record: InstanceRecord) -> str:
    return f"export KUBECONFIG={shlex.quote(record.kubeconfig)}"


async def _run_server(instance: ClusterInstance, kind: str, port: int, file: Path, *, insecure: bool) -> None:
    """Run the server until a signal arrives; a signal during the start aborts it.

    Raises:
        click.Abort: A signal arrived before the server was ready.
    """
    with instance.server_lock(), stop_event_on_signal() as stop_event:
        cluster = _serve_embedded(instance, port, file, insecure=insecure) if kind == "embedded" else _serve_real(file)
        async with asyncio.TaskGroup() as starting, AsyncExitStack() as stack:
            interruption = starting.create_task(abort_on_event(stop_event))
            url = await stack.enter_async_context(cluster)
            interruption.cancel()
            record = InstanceRecord(pid=os.getpid(), kind=kind, url=url, kubeconfig=str(file))
            instance.write_record(record)
            click.echo(f'cluster "{instance.name}" ({kind}) is up at {url}', err=True)
            click.echo(_format_export(record))
            sys.stdout.flush()
            await stop_event.wait()


@asynccontextmanager
async def _serve_embedded(instance: ClusterInstance, port: int, file: Path, *, insecure: bool) -> AsyncIterator[str]:
    from konverge_cluster._internal.embedded import LocalCluster, User

    clock, entropy = SystemClock(), SystemEntropy()
    if insecure:
        async with LocalCluster(clock=clock, entropy=entropy) as cluster:
            url = await cluster.serve(port)
            write_kubeconfig(build_kubeconfig(url, instance.name), file)
            yield url
        return
    authority, context = _create_certificate(instance.folder, clock)
    token = f"{entropy.uid()}{entropy.uid()}".replace("-", "")
    admin = User("konverge-admin", ("system:masters",))
    async with LocalCluster(clock=clock, entropy=entropy, tokens={token: admin}, requires_token=True) as cluster:
        url = await cluster.serve(port, context)
        write_kubeconfig(build_kubeconfig(url, instance.name, authority=authority, token=token), file)
        yield url


def _create_certificate(folder: Path, clock: Clock) -> tuple[bytes, ssl.SSLContext]:
    """Return the authority's certificate and a TLS context with a new certificate for this server."""
    try:
        from konverge._internal.certificates import CertificateAuthority
        from konverge._internal.runtime.webhooks.self_signed_certificate import write_pair
    except ImportError:
        raise ConfigurationError(
            "cluster certificate: expected the library cryptography, found none; run "
            "pip install 'konverge[local]', or start with --insecure, which gives every user of this machine access"
        ) from None
    authority = CertificateAuthority("konverge local authority", clock.now())
    pair = authority.issue(["127.0.0.1", "localhost"], clock.now(), timedelta(days=3650), name="konverge local")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory(dir=folder) as files:  # OpenSSL reads keys only from files
        write_pair(Path(files), pair, authority.pair.certificate)
        context.load_cert_chain(Path(files) / CERTIFICATE_FILE, Path(files) / KEY_FILE)
    return authority.pair.certificate, context


@asynccontextmanager
async def _serve_real(file: Path) -> AsyncIterator[str]:
    from konverge_cluster._internal.controlplane import BinariesNotFoundError, RealCluster

    try:
        async with RealCluster() as cluster:
            write_kubeconfig(cluster.kubeconfig.read_bytes(), file)
            yield cluster.url
    except BinariesNotFoundError as error:
        raise ConfigurationError(str(error)) from error


def _start_server(instance: ClusterInstance, kind: str, port: int, file: Path, *, insecure: bool) -> InstanceRecord:
    instance.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-m", "konverge", "local", "up", "--foreground", "--name", instance.name]
    command += ["--kubeconfig", str(file)] + (["--real"] if kind == "real" else ["--port", str(port)])
    command += ["--insecure"] if insecure else []
    with instance.log.open("wb") as log:
        # A separate session: neither Ctrl-C in this terminal nor its end may stop the cluster.
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        return asyncio.run(_wait_until_ready(instance, server))
    except BaseException:  # also Ctrl-C: no server may remain that the user does not know of
        server.terminate()
        try:
            with suppress(subprocess.TimeoutExpired):
                server.wait(_STOP_SECONDS)
        finally:
            server.kill()
        raise


async def _wait_until_ready(instance: ClusterInstance, server: subprocess.Popen[bytes]) -> InstanceRecord:
    clock = SystemClock()
    try:
        async with asyncio.timeout(_START_SECONDS):
            while (record := instance.read_record()) is None:
                if server.poll() is not None:
                    raise _build_start_error(instance, server.returncode)
                await clock.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise KonvergeError(f"the cluster was not ready within {_START_SECONDS:g} s (log: {instance.log})") from None
    return record


def _build_start_error(instance: ClusterInstance, exit_code: int) -> KonvergeError:
    """Return the last line of the server's log as the error of this command."""
    written = instance.log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
    lines = [line.removeprefix("konverge: ") for line in written.splitlines() if line.strip()]
    message = lines[-1] if lines else f"the server ended with exit code {exit_code}"
    return (
        ConfigurationError(message)
        if exit_code == ExitCode.CONFIGURATION
        else KonvergeError(f"{message} (log: {instance.log})")
    )


async def _stop_server(instance: ClusterInstance) -> bool:
    """Stop the server if there is one; return whether there was one."""
    record = instance.read_record()
    if record is None:
        if instance.is_locked:
            raise KonvergeError(
                f'the cluster "{instance.name}" is still starting; wait until it is ready and try again'
            )
        return False
    clock = SystemClock()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(record.pid, number)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                while instance.is_locked:
                    await clock.sleep(_POLL_SECONDS)
            return True
        except TimeoutError:
            continue
    raise KonvergeError(
        f'cluster "{instance.name}": process {record.pid} did not end after SIGTERM and SIGKILL; check that process'
    )
