"""What resolvers use of the machine: connections to addresses that were judged, folders for a while, and the time."""

from __future__ import annotations

from konverge.clock import Clock
from konverge_resolution.address_resolver import GuardedAddressResolver
from konverge_resolution.network import AllowedNetworks, DnsResolver, GuardedHttp, TrustStore
from konverge_resolution.resolver import ClusterReader, SecretReader, Services
from konverge_resolution.workspaces import TemporaryFolders

__all__ = ["HostServices"]


class HostServices:
    """What all requests of a process share; to be closed at its end.

    Args:
        clock: The time.
        certificates: Certificates (PEM) that are trusted besides the machine's.

    Raises:
        ValueError: The certificates are none.
    """

    def __init__(self, clock: Clock, *, certificates: str = "") -> None:
        self._clock = clock
        self._trust = TrustStore(certificates)
        self._names = DnsResolver()
        self._folders = TemporaryFolders(clock)

    def build_services(
        self, namespace: str, networks: AllowedNetworks, *, secrets: SecretReader, cluster: ClusterReader | None = None
    ) -> Services:
        """The services for one request.

        Args:
            namespace: For whom: each has a share of the threads that resolve names.
            networks: What may be reached besides the public internet.
            secrets: The Secrets of that namespace.
            cluster: Reads objects; None where there is no cluster.
        """
        lookup = self._names.lookup_for(namespace)
        return Services(
            http=GuardedHttp(lookup, tls=self._trust, networks=networks),
            secrets=secrets,
            workspaces=self._folders,
            clock=self._clock,
            cluster=cluster,
            addresses=GuardedAddressResolver(lookup, networks),
        )

    def close(self) -> None:
        """Remove the folders, and let go of what resolves names."""
        self._names.close()
        self._folders.close()
