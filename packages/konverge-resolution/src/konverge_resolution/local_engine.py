"""Resolution without a cluster: on a command line, for a box that is loaded, in an operator of its own.

Everything goes through the same `Engine`; what is different is where credentials come from: from the process's
environment or from files that somebody has named, never from an argument.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import ConfigurationError
from konverge.suggestions import closest_match
from konverge_resolution.engine import Engine, EngineOptions, Requester, Verifier
from konverge_resolution.errors import ResolutionError
from konverge_resolution.host_services import HostServices
from konverge_resolution.network import AllowedNetworks
from konverge_resolution.policy import Policy, PolicyDecision
from konverge_resolution.reasons import Reason
from konverge_resolution.resolver import ClusterReader, Resolver, Services
from konverge_resolution.resolver_registry import ResolverRegistry
from konverge_resolution.resolvers import list_resolver_names

__all__ = ["CredentialSource", "ErrorHints", "LocalSecrets", "LocalSetup", "local_engine"]

_MAX_CREDENTIAL_BYTES = 64 * 1024
_MAX_LISTED = 5
_CREDENTIAL_SYNTAX = "NAME/KEY=env:VARIABLE or file:PATH"


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """Where one value of what a reference calls a Secret is.

    Args:
        secret: What the reference calls the Secret.
        key: The key of the value in it.
        variable: The environment variable that has it; empty for none.
        file: The file that has it; None for none.
    """

    secret: str
    key: str
    variable: str = ""
    file: Path | None = None

    @classmethod
    def parse(cls, text: str) -> CredentialSource:
        """Read ``NAME/KEY=env:VARIABLE`` or ``NAME/KEY=file:PATH``.

        Raises:
            ValueError: It is neither. The message does not repeat it: it may be a credential.
        """
        name, _, place = text.partition("=")
        secret, _, key = name.partition("/")
        kind, _, where = place.partition(":")
        if not (secret and key and where) or kind not in ("env", "file"):
            raise ValueError("expected NAME/KEY=env:VARIABLE or NAME/KEY=file:PATH; a credential itself is no argument")
        return cls(secret, key, where) if kind == "env" else cls(secret, key, file=Path(where))

    def read(self) -> bytes:
        """The value.

        Raises:
            ResolutionError: ``AuthRequired``: it is not there; the message names the place.
        """
        try:
            if self.file is not None:
                with self.file.open("rb") as opened:
                    found = opened.read(_MAX_CREDENTIAL_BYTES)
            else:
                found = os.environ[self.variable].encode()
        except KeyError:
            message = f"environment variable {self.variable} is not set"
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, message) from None
        except OSError as error:
            message = f"credential file {self.file}: {error.strerror}"
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, message) from None
        # Whoever writes a token into a file ends its line.
        return found.removesuffix(b"\n") if found.count(b"\n") == 1 else found


class LocalSecrets:
    """What references call Secrets, without a cluster (`konverge_resolution.SecretReader`).

    Args:
        sources: Where their values are; each is read when it is needed.
        syntax: What a failure says about how one more is named.
    """

    def __init__(self, sources: Iterable[CredentialSource] = (), syntax: str = _CREDENTIAL_SYNTAX) -> None:
        self._sources = tuple(sources)
        self._syntax = syntax

    async def read_value(self, name: str, key: str) -> str:
        """One value.

        Raises:
            ResolutionError: ``AuthRequired``: nobody has said where it is, or it is not there.
        """
        for place in self._sources:
            if (place.secret, place.key) == (name, key):
                return place.read().decode("utf-8", "replace")
        raise self._build_error(name, key)

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        """All values of one.

        Raises:
            ResolutionError: As `value`.
        """
        found = {place.key: place.read() for place in self._sources if place.secret == name}
        if not found:
            raise self._build_error(name)
        return found

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        """None: there are no ServiceAccounts."""
        return ()

    def _build_error(self, name: str, key: str = "") -> ResolutionError:
        message = f"the reference names a credential, and nobody has said where it is: {self._syntax}"
        given = [f"{place.secret}/{place.key}" for place in self._sources]
        names = {place.secret for place in self._sources}
        # Only a name that is like a given one: whoever takes the parameter for the credential has written that there.
        if name in names or closest_match(name, names):
            message += f"; wanted: {name}/{key or '…'}"
        if given:
            message += f"; given: {', '.join(given[:_MAX_LISTED])}"
        return ResolutionError(Reason.AUTHENTICATION_REQUIRED, message)


@dataclass(frozen=True, slots=True)
class ErrorHints:
    """What failures say about how something is allowed or given: whoever sets an engine up knows how that is done.

    Args:
        networks: How a private network is allowed, as the end of a sentence.
        credentials: How the place of a credential is named.
    """

    networks: str = "privateNetworks of a policy or networks of LocalSetup allow one"
    credentials: str = _CREDENTIAL_SYNTAX


@dataclass(frozen=True, slots=True)
class LocalSetup:
    """How references are resolved without a cluster.

    Args:
        settings: By name of the resolver, its settings, as its ConfigMap would have them.
        policies: What may be fetched.
        credentials: Where the values are of what references call Secrets.
        networks: Private networks that may be reached besides what policies allow.
        certificates: Certificates (PEM) that are trusted besides the machine's.
        options: What holds for all.
        cluster: Where the resolver ``cluster`` reads; None lets it fail.
        verifier: Looks at signatures; None refuses what a policy wants to be signed.
        hints: What failures say about how something is allowed or given.
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


@asynccontextmanager
async def local_engine(
    resolvers: Iterable[Resolver],
    setup: LocalSetup | None = None,
    *,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> AsyncIterator[Engine]:
    """An engine that needs no cluster; after the block nothing is left of it, neither folders nor threads.

    Args:
        resolvers: The resolvers.
        setup: How they are set up.
        clock: The time; the machine's when not given.
        entropy: The randomness; the machine's when not given.

    Raises:
        konverge.errors.ConfigurationError: The certificates are none, a network is none, or a policy is for a resolver
            that does not exist.
    """
    setup, resolvers = setup or LocalSetup(), tuple(resolvers)
    known = list_resolver_names() | {resolver.name for resolver in resolvers}
    for policy in setup.policies:
        if message := policy.find_unknown_resolver(known):
            raise ConfigurationError(f"policy {policy.name}: resolvers: {message}")
    time = clock or SystemClock()
    try:
        AllowedNetworks(setup.networks)
        machine = HostServices(time, certificates=setup.certificates)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None

    def build_services(requester: Requester, admission: PolicyDecision) -> Services:
        allowed = (*setup.networks, *(str(each) for each in admission.private_networks))
        networks = AllowedNetworks(allowed, opened_by=setup.hints.networks)
        secrets = LocalSecrets(setup.credentials, setup.hints.credentials)
        return machine.build_services(requester.namespace, networks, secrets=secrets, cluster=setup.cluster)

    try:
        yield Engine(
            ResolverRegistry.of(resolvers, _build_settings(resolvers, setup)),
            build_services,
            clock=time,
            entropy=entropy or SystemEntropy(),
            options=setup.options,
            policies=setup.policies,
            verifier=setup.verifier,
        )
    finally:
        machine.close()


def _build_settings(resolvers: Iterable[Resolver], setup: LocalSetup) -> dict[str, Mapping[str, str]]:
    """The settings, with the certificates for resolvers whose programs connect by themselves."""
    found = dict(setup.settings)
    for resolver in resolvers:
        if setup.certificates and "ca-certificates" in resolver.settings:
            found[resolver.name] = {"ca-certificates": setup.certificates, **found.get(resolver.name, {})}
    return found
