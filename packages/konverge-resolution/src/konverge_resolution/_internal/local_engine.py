"""Resolution without a cluster: on the command line, for boxes, and in an operator's own process.

The same `Engine` resolves. Only the credentials differ: they come from environment variables or files that the
configuration names, never from an argument.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from konverge._internal.suggestions import closest_match
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import ConfigurationError
from konverge_resolution._internal.disk_cache import DiskCache
from konverge_resolution._internal.engine import Engine, EngineOptions, Requester, Verifier
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.fetch_progress import ProgressObserver
from konverge_resolution._internal.host_services import HostServices
from konverge_resolution._internal.network import AllowedNetworks, ConnectionPools, EnvironmentProxies
from konverge_resolution._internal.policy import Policy, PolicyDecision
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolver import ClusterReader, Resolver, Services
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolver_settings import CA_CERTIFICATES, merge_settings
from konverge_resolution._internal.resolvers import list_resolver_names
from konverge_resolution._internal.resolvers.disk import DiskResolver
from konverge_resolution._internal.user_access import UserCredentials

__all__ = ["CredentialSource", "ErrorHints", "LocalSecrets", "LocalSetup", "local_engine"]

_MAX_CREDENTIAL_BYTES = 64 * 1024
_MAX_LISTED = 5
_CREDENTIAL_SYNTAX = "NAME/KEY=env:VARIABLE or file:PATH"


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """Location of one value of a credential that a reference names as a Secret.

    Args:
        secret: The name of the Secret in the reference.
        key: The key of the value.
        variable: The environment variable with the value; empty for none.
        file: The file with the value; None for none.
    """

    secret: str
    key: str
    variable: str = ""
    file: Path | None = None

    @classmethod
    def parse(cls, text: str) -> CredentialSource:
        """Parse ``NAME/KEY=env:VARIABLE`` or ``NAME/KEY=file:PATH``.

        Raises:
            ValueError: The text has neither form. The message does not repeat it, since it may be a credential.
        """
        name, _, place = text.partition("=")
        secret, _, key = name.partition("/")
        kind, _, where = place.partition(":")
        if not (secret and key and where) or kind not in ("env", "file"):
            raise ValueError(
                "expected NAME/KEY=env:VARIABLE or NAME/KEY=file:PATH; a credential must not be an argument"
            )
        return cls(secret, key, where) if kind == "env" else cls(secret, key, file=Path(where))

    @property
    def is_pipe(self) -> bool:
        """Tell whether the value is in a pipe, such as ``file:<(program)`` of a shell, which can be read only once."""
        try:
            return self.file is not None and stat.S_ISFIFO(self.file.stat().st_mode)
        except OSError:
            return False  # `read` reports it

    async def read(self) -> bytes:
        """Return the value.

        Raises:
            ResolutionError: ``AuthRequired``: the variable or file cannot be read, or is too large; the message names
                it.
        """
        try:
            if self.file is not None:
                value = await (_read_pipe(self.file) if self.is_pipe else asyncio.to_thread(_read_start, self.file))
                if len(value) > _MAX_CREDENTIAL_BYTES:
                    message = f"credential file {self.file}: expected at most {_MAX_CREDENTIAL_BYTES} bytes, found more"
                    raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, message)
            else:
                value = os.environ[self.variable].encode()
        except KeyError:
            message = f"environment variable {self.variable} is not set"
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, message) from None
        except OSError as error:
            message = f"credential file {self.file}: {error.strerror}"
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, message) from None
        # A file with one token usually ends with a newline.
        return value.removesuffix(b"\n") if value.count(b"\n") == 1 else value


class LocalSecrets:
    """Credentials that references name as Secrets, without a cluster (`konverge_resolution.SecretReader`).

    Args:
        sources: The locations of the values; each is read when it is needed, a pipe only once.
        syntax: The syntax of another location, for error messages.
    """

    def __init__(self, sources: Iterable[CredentialSource] = (), syntax: str = _CREDENTIAL_SYNTAX) -> None:
        self._sources = tuple(sources)
        self._syntax = syntax
        self._pipes: dict[CredentialSource, bytes] = {}
        self._reading = asyncio.Lock()

    async def read_value(self, name: str, key: str) -> str:
        """Return one value of a Secret.

        Raises:
            ResolutionError: ``AuthRequired``: the value has no location, or cannot be read.
        """
        for source in self._sources:
            if (source.secret, source.key) == (name, key):
                return (await self._read(source)).decode("utf-8", "replace")
        raise self._build_error(name, key)

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        """Return all values of one Secret.

        Raises:
            ResolutionError: As `read_value`.
        """
        values = {source.key: await self._read(source) for source in self._sources if source.secret == name}
        if not values:
            raise self._build_error(name)
        return values

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        """Return an empty tuple: there are no ServiceAccounts."""
        return ()

    async def _read(self, source: CredentialSource) -> bytes:
        async with self._reading:
            if source in self._pipes:
                return self._pipes[source]
            is_pipe, value = source.is_pipe, await source.read()
            if is_pipe:
                self._pipes[source] = value
            return value

    def _build_error(self, name: str, key: str = "") -> ResolutionError:
        message = f"the reference names a credential without a location; add {self._syntax}"
        given = [f"{source.secret}/{source.key}" for source in self._sources]
        names = {source.secret for source in self._sources}
        # Print only a name that is similar to a given one: the user may have written the credential itself there.
        if name in names or closest_match(name, names):
            message += f"; expected {name}/{key or '…'}"
        if given:
            message += f"; found {', '.join(given[:_MAX_LISTED])}"
        return ResolutionError(Reason.AUTHENTICATION_REQUIRED, message)


@dataclass(frozen=True, slots=True)
class ErrorHints:
    """Hints in error messages on how to permit or configure something; they depend on where the engine runs.

    Args:
        networks: How to permit a private network, as the end of a sentence.
        credentials: The syntax of the location of a credential.
    """

    networks: str = "permit it with privateNetworks of a policy or networks of LocalSetup"
    credentials: str = _CREDENTIAL_SYNTAX


@dataclass(frozen=True, slots=True)
class LocalSetup:
    """Configuration of resolution without a cluster.

    Args:
        settings: Settings by resolver name, as in the ConfigMap of the resolver.
        policies: The policies that allow and restrict fetches.
        credentials: The locations of the values that references name as Secrets.
        networks: Permitted private networks besides those of policies.
        certificates: Trusted certificates (PEM) besides those of the system.
        options: Options for all resolvers.
        cluster: Objects for the resolver ``cluster``; None makes it fail.
        verifier: Verifies signatures; None refuses content that policies require to be signed.
        hints: Hints in error messages.
        cache_folder: Folder with a cache of permanently named content for all processes of the user; None for none.
        directory: A local directory for the resolver ``disk``, for development; None for no such resolver.
        user_credentials: Credentials of the user of a command; None for none.
        proxies: Proxies of the user's environment; None ignores its variables.
        observer: Receives the progress of all resolutions; None for none.
    """

    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    policies: tuple[Policy, ...] = ()
    credentials: tuple[CredentialSource, ...] = ()
    networks: tuple[str, ...] = ()
    certificates: str = ""
    options: EngineOptions = field(default_factory=EngineOptions)
    cluster: ClusterReader | None = None
    verifier: Verifier | None = None
    hints: ErrorHints = field(default_factory=ErrorHints)
    cache_folder: Path | None = None
    directory: Path | None = None
    user_credentials: UserCredentials | None = None
    proxies: EnvironmentProxies | None = None
    observer: ProgressObserver | None = None


@asynccontextmanager
async def local_engine(
    resolvers: Iterable[Resolver],
    setup: LocalSetup | None = None,
    *,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> AsyncIterator[Engine]:
    """Provide an engine that needs no cluster. Its folders and threads are gone after the block.

    Args:
        resolvers: The resolvers.
        setup: The configuration.
        clock: The clock; the system clock when None.
        entropy: The source of randomness; the system's when None.

    Raises:
        konverge.errors.ConfigurationError: The certificates or a network cannot be parsed, the directory does not
            exist, or a policy names an unknown resolver.
    """
    setup = setup or LocalSetup()
    resolvers = (*resolvers, *_build_disk_resolver(setup.directory))
    known = list_resolver_names() | {resolver.name for resolver in resolvers}
    for policy in setup.policies:
        if message := policy.find_unknown_resolver(known):
            raise ConfigurationError(f"policy {policy.name}: resolvers: {message}")
    time = clock or SystemClock()
    try:
        AllowedNetworks(setup.networks)
        pools = ConnectionPools()
        machine = HostServices(time, certificates=setup.certificates, pools=pools)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None

    secrets = LocalSecrets(setup.credentials, setup.hints.credentials)

    def build_services(requester: Requester, admission: PolicyDecision) -> Services:
        allowed = (*setup.networks, *(str(each) for each in admission.private_networks))
        proxies = () if setup.proxies is None else setup.proxies.list_addresses()
        networks = AllowedNetworks(allowed, opened_by=setup.hints.networks, proxies=proxies)
        return machine.build_services(
            requester.namespace,
            networks,
            secrets=secrets,
            cluster=setup.cluster,
            user_credentials=setup.user_credentials,
            proxies=setup.proxies,
            observer=setup.observer,
        )

    try:
        async with pools:
            yield Engine(
                ResolverRegistry.of(resolvers, _build_settings(resolvers, setup)),
                build_services,
                clock=time,
                entropy=entropy or SystemEntropy(),
                options=setup.options,
                policies=setup.policies,
                disk_cache=None if setup.cache_folder is None else DiskCache(setup.cache_folder, time),
                verifier=setup.verifier,
            )
    finally:
        machine.close()


def _read_start(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(_MAX_CREDENTIAL_BYTES + 1)


async def _read_pipe(file: Path) -> bytes:
    """Read a pipe until its writer closes it; unlike a read in a thread, this can be cancelled.

    Raises:
        OSError: The pipe cannot be opened.
    """
    opened = os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), opened
    )
    try:
        value = b""
        while len(value) <= _MAX_CREDENTIAL_BYTES and (piece := await reader.read(_MAX_CREDENTIAL_BYTES)):
            value += piece
        return value
    finally:
        transport.close()


def _build_disk_resolver(directory: Path | None) -> list[Resolver]:
    if directory is None:
        return []
    if not directory.is_dir():
        raise ConfigurationError(f"directory {directory}: expected a directory, found none")
    return [DiskResolver(directory)]


def _build_settings(resolvers: Iterable[Resolver], setup: LocalSetup) -> dict[str, Mapping[str, str]]:
    """Return the settings; resolvers that open their own connections also get the certificates."""
    settings = dict(setup.settings)
    for resolver in resolvers:
        if setup.certificates and CA_CERTIFICATES in resolver.settings:
            settings[resolver.name] = merge_settings(
                {CA_CERTIFICATES: setup.certificates}, settings.get(resolver.name, {})
            )
    return settings
