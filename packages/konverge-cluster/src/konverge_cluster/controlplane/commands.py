"""The command line of each program of the control plane, and the files that it reads. Pure.

Two choices save what would otherwise need a certificate library or another program. kube-apiserver makes its own
serving certificate when it finds none in ``--cert-dir``, and it does so before it reads the keys for service account
tokens: so the key of that certificate is theirs too. And etcd is reached through a socket in a folder of ours, not
through a port, so that no other cluster's etcd can answer.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "ADMIN",
    "CLIENTS",
    "NODE",
    "ControlPlaneLayout",
    "build_first_programs",
    "build_kubeconfig",
    "build_later_programs",
    "format_token_file",
]

ADMIN = "admin"
NODE = "node-0"

# The users that need a token and a kubeconfig, each with its group. The controllers get their rights from the server's
# bootstrap policy, as in a real cluster; kwok does what a kubelet, a node's administrator and a controller do.
CLIENTS = {
    ADMIN: "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "kwok": "system:masters",
}
_DATA = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class ControlPlaneLayout:
    """Where everything of one cluster is.

    Args:
        binaries: The folder of the programs.
        folder: Logs, credentials, the kubeconfig and the audit log.
        memory: etcd's data and its socket; memory-backed if possible.
        port: The API server's.
    """

    binaries: Path
    folder: Path
    memory: Path
    port: int

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate(self) -> Path:
        """The server's certificate followed by that of the authority that signed it; written by the server."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def key(self) -> Path:
        """The server's private key; written by the server."""
        return self.certificate.with_suffix(".key")

    def has_certificate(self) -> bool:
        """Tell whether the certificate is whole: the server writes the key after it."""
        return self.key.exists()

    @property
    def tokens(self) -> Path:
        """The tokens that the server accepts."""
        return self.folder / "tokens.csv"

    @property
    def audit_log(self) -> Path:
        """One JSON line for each request."""
        return self.folder / "audit.log"

    @property
    def storage(self) -> Path:
        """The folder in which etcd keeps its data."""
        return self.memory / "etcd"

    def get_kubeconfig(self, user: str = ADMIN) -> Path:
        """The file with which a user's client connects."""
        return self.folder / ("kubeconfig" if user == ADMIN else f"{user.removeprefix('system:')}.kubeconfig")

    def get_log(self, program: str) -> Path:
        """What a program printed."""
        return self.folder / f"{program}.log"


def format_token_file(tokens: dict[str, str]) -> str:
    """The CSV file of tokens (token, user, UID, groups) for `--token-auth-file`."""
    return "".join(f'{token},{user},{user},"{CLIENTS[user]}"\n' for user, token in tokens.items())


def build_kubeconfig(url: str, certificate: str, token: str) -> str:
    """A kubeconfig for one user, with everything in it; JSON, which is YAML too."""
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(certificate.encode()).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "konverge",
        "clusters": [{"name": "konverge", "cluster": cluster}],
        "users": [{"name": "konverge", "user": {"token": token}}],
        "contexts": [{"name": "konverge", "context": {"cluster": "konverge", "user": "konverge"}}],
    }
    return json.dumps(document, indent=2) + "\n"


def build_first_programs(layout: ControlPlaneLayout) -> dict[str, list[str]]:
    """The store and the API server, which need nothing but files."""
    etcd_socket = f"unix://{layout.memory}/etcd.sock"
    return {
        "etcd": [
            str(layout.binaries / "etcd"),
            "--name=konverge",
            "--unsafe-no-fsync",
            f"--data-dir={layout.storage}",
            f"--listen-client-urls={etcd_socket}",
            "--advertise-client-urls=http://localhost:1",  # must look like a host and port; nobody asks for it
            "--listen-peer-urls=http://127.0.0.1:0",
            "--log-level=warn",
        ],
        "kube-apiserver": [
            str(layout.binaries / "kube-apiserver"),
            f"--etcd-servers={etcd_socket}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={layout.port}",
            f"--cert-dir={layout.certificate.parent}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={layout.key}",
            f"--service-account-signing-key-file={layout.key}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--authorization-mode=RBAC",
            f"--token-auth-file={layout.tokens}",
            f"--audit-log-path={layout.audit_log}",
            f"--audit-policy-file={_DATA / 'audit-policy.yaml'}",
            "--audit-log-maxsize=500",  # megabytes, once rotated: bounded on a disk that is not ours
            "--audit-log-maxbackup=1",
            # A loopback address is refused as the endpoint of the Service "kubernetes".
            "--endpoint-reconciler-type=none",
            # Pods need no tokens here and may start before their namespace has its service account; the node is ready
            # as soon as it exists, and a taint until the next heartbeat would only delay the first pod.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--profiling=false",
        ],
    }


def build_later_programs(layout: ControlPlaneLayout) -> dict[str, list[str]]:
    """The controllers, the scheduler and the kubelet, which need kubeconfigs."""
    # Their own rate limits are for clusters that others use too.
    unlimited = ["--kube-api-qps=5000", "--kube-api-burst=5000"]
    return {
        "kube-controller-manager": [
            str(layout.binaries / "kube-controller-manager"),
            f"--kubeconfig={layout.get_kubeconfig('system:kube-controller-manager')}",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={layout.key}",
            f"--root-ca-file={layout.certificate}",
            *unlimited,
        ],
        "kube-scheduler": [
            str(layout.binaries / "kube-scheduler"),
            f"--kubeconfig={layout.get_kubeconfig('system:kube-scheduler')}",
            "--leader-elect=false",
            "--secure-port=0",
            *unlimited,
        ],
        "kwok": [
            str(layout.binaries / "kwok"),
            f"--kubeconfig={layout.get_kubeconfig('kwok')}",
            f"--config={_DATA / 'stages.yaml'}",
            "--manage-all-nodes=true",
            "--node-ip=127.0.0.1",
            "--node-lease-duration-seconds=40",
            "--cidr=10.244.0.0/16",
        ],
    }
