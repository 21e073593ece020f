"""The command lines of the control plane's programs and the files that they read. Pure.

Two choices avoid a certificate library or another program. kube-apiserver creates a serving certificate if
``--cert-dir`` contains none, before it reads the keys for service account tokens; so they use the key of that
certificate. etcd listens on a socket in a private folder instead of a port, so that no other cluster's etcd can answer.
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

# The users that need a token and a kubeconfig, each with its group. The bootstrap policy of the server gives the
# controllers their permissions, as in a real cluster; kwok needs those of a kubelet, an administrator and a controller.
CLIENTS = {
    ADMIN: "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "kwok": "system:masters",
}
_DATA = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class ControlPlaneLayout:
    """Paths, port and URL of one cluster.

    Args:
        binaries: The folder of the programs.
        folder: The folder for logs, credentials, the kubeconfig and the audit log.
        memory: The folder for etcd's data and its socket; memory-backed if possible.
        port: The port of the API server.
    """

    binaries: Path
    folder: Path
    memory: Path
    port: int

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate(self) -> Path:
        """The server's certificate followed by that of the signing authority; the server writes the file."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def key(self) -> Path:
        """The server's private key; the server writes the file."""
        return self.certificate.with_suffix(".key")

    def has_certificate(self) -> bool:
        """Check that the certificate is complete: the server writes the key after it."""
        return self.key.exists()

    @property
    def tokens(self) -> Path:
        """The file with the tokens that the server accepts."""
        return self.folder / "tokens.csv"

    @property
    def audit_log(self) -> Path:
        """The audit log, with one JSON line for each request."""
        return self.folder / "audit.log"

    @property
    def storage(self) -> Path:
        """The folder in which etcd keeps its data."""
        return self.memory / "etcd"

    def get_kubeconfig(self, user: str = ADMIN) -> Path:
        """Return the path of a user's kubeconfig."""
        return self.folder / ("kubeconfig" if user == ADMIN else f"{user.removeprefix('system:')}.kubeconfig")

    def get_log(self, program: str) -> Path:
        """Return the path of a program's log."""
        return self.folder / f"{program}.log"


def format_token_file(tokens: dict[str, str]) -> str:
    """Return the CSV file of tokens (token, user, UID, groups) for `--token-auth-file`."""
    return "".join(f'{token},{user},{user},"{CLIENTS[user]}"\n' for user, token in tokens.items())


def build_kubeconfig(url: str, certificate: str, token: str) -> str:
    """Return a self-contained kubeconfig for one user as JSON, which is also YAML."""
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
    """Return the commands of etcd and the API server, which need only files."""
    etcd_socket = f"unix://{layout.memory}/etcd.sock"
    return {
        "etcd": [
            str(layout.binaries / "etcd"),
            "--name=konverge",
            "--unsafe-no-fsync",
            f"--data-dir={layout.storage}",
            f"--listen-client-urls={etcd_socket}",
            "--advertise-client-urls=http://localhost:1",  # must look like a host and port; no client uses it
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
            "--audit-log-maxsize=500",  # megabytes before rotation: limits the use of the user's disk
            "--audit-log-maxbackup=1",
            # The API server rejects a loopback address as the endpoint of the Service "kubernetes".
            "--endpoint-reconciler-type=none",
            # Pods need no tokens here and can start before their namespace has its service account. The node is ready
            # as soon as it exists; a taint until the next heartbeat would only delay the first pod.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            # As kubeadm and managed clusters do: PodSecurity decides about privileged containers.
            "--allow-privileged=true",
            "--profiling=false",
        ],
    }


def build_later_programs(layout: ControlPlaneLayout) -> dict[str, list[str]]:
    """Return the commands of the controllers, the scheduler and the kubelet, which need kubeconfigs."""
    # The default rate limits of these programs are for clusters with several clients.
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
