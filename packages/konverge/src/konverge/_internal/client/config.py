"""The configuration of a connection to one cluster as one user."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from konverge._internal.client.credentials import AnonymousCredentials, Credentials

__all__ = ["ClusterConfig", "TlsConfig"]


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """The certificates with which the server and the client authenticate.

    Args:
        authority: The CA certificates (PEM) for the server's certificate; empty for those of the system.
        certificate: The client certificate (PEM); empty for none.
        key: The private key (PEM) of the client certificate.
        server_name: The name in the server's certificate, if it differs from the address.
        insecure: Whether to accept any server certificate.
        authority_file: The file of the authority if it is to be read again; None if the authority never changes.
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
        """Return the configuration with the present contents of the files.

        An empty file is ignored, because another process is just writing it.

        Raises:
            OSError: A file cannot be read.
        """
        return replace(
            self,
            authority=_read_file(self.authority_file) or self.authority,
            certificate=_read_file(self.certificate_file) or self.certificate,
            key=_read_file(self.key_file) or self.key,
        )


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The configuration for one cluster and one of its users.

    Args:
        server: The URL of the API server: ``https://host:port``, optionally with a path.
        source: The source of the configuration, for messages: ``context "kind" of /home/ann/.kube/config``.
        namespace: The default namespace.
        tls: The certificates of both sides.
        credentials: The credentials of the user.
        impersonation: The impersonation headers, in the order in which they are sent.
        proxy_url: The URL of the HTTP proxy; empty for none.
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
