"""Services of this process for resolvers: checked connections, temporary folders, and the clock."""

from __future__ import annotations

from konverge.clock import Clock
from konverge_resolution._internal.address_resolver import GuardedAddressResolver
from konverge_resolution._internal.fetch_progress import FetchProgress, ProgressObserver
from konverge_resolution._internal.network import (
    AllowedNetworks,
    ConnectionPools,
    DnsResolver,
    EnvironmentProxies,
    GuardedHttp,
    TrustStore,
)
from konverge_resolution._internal.resolver import ClusterReader, SecretReader, Services
from konverge_resolution._internal.user_access import UserCredentials
from konverge_resolution._internal.workspaces import TemporaryFolders

__all__ = ["HostServices"]


class HostServices:
    """Services that all requests of a process share. Close them at shutdown.

    Args:
        clock: The clock.
        certificates: Trusted certificates (PEM) besides those of the system.
        pools: Open connections that requests of a namespace share; None for connections of each resolution.

    Raises:
        ValueError: The certificates cannot be parsed.
    """

    def __init__(self, clock: Clock, *, certificates: str = "", pools: ConnectionPools | None = None) -> None:
        self._clock = clock
        self._pools = pools
        self._trust = TrustStore(certificates)
        self._names = DnsResolver()
        self._folders = TemporaryFolders(clock)

    def build_services(
        self,
        namespace: str,
        networks: AllowedNetworks,
        *,
        secrets: SecretReader,
        cluster: ClusterReader | None = None,
        user_credentials: UserCredentials | None = None,
        proxies: EnvironmentProxies | None = None,
        observer: ProgressObserver | None = None,
    ) -> Services:
        """Build the services for one request.

        Args:
            namespace: The namespace of the request: each namespace has a share of the threads for DNS lookups.
            networks: Permitted networks besides the public internet.
            secrets: The Secrets of that namespace.
            cluster: Reads objects; None without a cluster.
            user_credentials: Credentials of the user of a command; None in a cluster.
            proxies: Proxies of the user's environment; None in a cluster.
            observer: Receives the progress; None for none.
        """
        lookup = self._names.lookup_for(namespace)
        progress = FetchProgress(observer, is_logged=True)
        return Services(
            http=GuardedHttp(
                lookup,
                tls=self._trust,
                networks=networks,
                proxy=proxies,
                pools=self._pools,
                tenant=namespace,
                progress=progress,
            ),
            secrets=secrets,
            workspaces=self._folders,
            clock=self._clock,
            cluster=cluster,
            addresses=GuardedAddressResolver(lookup, networks),
            user_credentials=user_credentials,
            progress=progress,
        )

    def close(self) -> None:
        """Remove the folders and stop the DNS lookups."""
        self._names.close()
        self._folders.close()
