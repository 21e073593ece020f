"""Everything that opening a connection to one cluster as one user takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from konverge.client.credentials import AnonymousCredentials, Credentials

__all__ = ["ClusterConfig", "TlsConfig"]


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """How the server proves who it is, and how we do.

    Args:
        authority: The certificates (PEM) that the server's must be signed by; empty for those of the system.
        certificate: Our own certificate (PEM), when that is how we prove who we are.
        key: The private key (PEM) of it.
        server_name: The name that the server's certificate must be made out for, when it is not the address.
        insecure: Believe any server.
        authority_file: Where the authority is from, if its file is to be read again; None if it stays as it is.
        certificate_file: The same for the certificate.
        key_file: The same for the key.
    """

    authority: bytes = field(default=b"", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    server_name: str = ""
    insecure: bool = False
    authority_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    def reload(self) -> TlsConfig:
        """The same with what the files hold now; what is in an empty one stays as it was, since it is being written.

        Raises:
            OSError: One cannot be read.
        """
        return replace(
            self,
            authority=_read_file(self.authority_file) or self.authority,
            certificate=_read_file(self.certificate_file) or self.certificate,
            key=_read_file(self.key_file) or self.key,
        )


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One cluster and one user of it.

    Args:
        server: Where the API server is: ``https://host:port``, perhaps with a path.
        source: Where all of this was found, for messages: ``context "kind" of /home/ann/.kube/config``.
        namespace: The namespace to work in when none is named.
        tls: How both sides prove who they are.
        credentials: Who asks.
        impersonation: Headers that ask to act as somebody else, in the order in which they are sent.
        proxy_url: The HTTP proxy on the way; empty for none.
    """

    server: str
    source: str
    namespace: str = "default"
    tls: TlsConfig = TlsConfig()
    credentials: Credentials = field(default_factory=AnonymousCredentials)
    impersonation: tuple[tuple[str, str], ...] = ()
    proxy_url: str = field(default="", repr=False)


def _read_file(file: Path | None) -> bytes:
    return b"" if file is None else file.read_bytes()
