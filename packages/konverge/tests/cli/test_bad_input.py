"""Bad input to the command line: one line each on stderr, an exit code that says what kind of failure, no traceback."""

from __future__ import annotations

import base64
import datetime
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from konverge_cluster._internal.cli.demo import find_example_folder
from tests.cli.conftest import Konverge


@pytest.fixture
def operator_file() -> Path:
    """An operator with nothing wrong."""
    return find_example_folder() / "operator.py"


def kubeconfig(folder: Path, server: str, authority: bytes = b"") -> Path:
    cluster = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    file = folder / "kubeconfig"
    document = {
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    file.write_text(yaml.safe_dump(document))
    return file


def check_one_line(done: subprocess.CompletedProcess[str], exit_code: int, *words: str) -> None:
    """Assert that a command failed with this code and one line that has these words."""
    assert done.returncode == exit_code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("konverge: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


@pytest.mark.slow
def test_no_kubeconfig(started_konverge: Konverge, operator_file: Path, home: Path) -> None:
    done = started_konverge("run", operator_file)

    check_one_line(done, 3, "no kubeconfig", f"{home}/.kube/config", "(--local starts a cluster)")


@pytest.mark.slow
def test_a_kubeconfig_file_that_is_not_there(konverge: Konverge, operator_file: Path) -> None:
    check_one_line(konverge("run", operator_file, "--kubeconfig", "/no/such/file"), 3, "/no/such/file")


@pytest.mark.slow
def test_a_context_that_does_not_exist(konverge: Konverge, operator_file: Path, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")

    done = konverge("run", operator_file, "--kubeconfig", config, "--context", "there")

    check_one_line(done, 3, 'no context "there"', "it has: here")


@pytest.mark.slow
def test_a_server_that_cannot_be_reached(konverge: Konverge, operator_file: Path, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, f"http://127.0.0.1:{find_unused_port()}")

    done = konverge("run", operator_file, "--kubeconfig", config, "--start-timeout", "0")

    check_one_line(done, 4, "127.0.0.1")


def test_an_expired_certificate(konverge: Konverge, operator_file: Path, tmp_path: Path, expired_server: Path) -> None:
    done = konverge("run", operator_file, "--kubeconfig", expired_server)

    check_one_line(done, 4, "expired")


def test_an_operator_file_that_is_not_there(konverge: Konverge) -> None:
    check_one_line(konverge("run", "nothing.py"), 3, "nothing.py: no such file")


def test_an_operator_file_that_does_not_import(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import konverge\nfrom konverge import Opertor\n")

    check_one_line(konverge("crd", "broken.py"), 3, "broken.py, line 2: ImportError: cannot import name 'Opertor'")


def test_an_operator_file_without_an_operator(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")

    check_one_line(konverge("crd", "empty.py"), 3, "empty.py: expected an operator, found none")


def test_an_operator_file_with_several_operators(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text("from konverge import Operator\na = Operator('a')\nb = Operator('b')\n")

    check_one_line(konverge("crd", "two.py"), 3, "found several (a, b)")


def test_a_cluster_that_is_not_running(konverge: Konverge) -> None:
    check_one_line(konverge("local", "env"), 3, 'no cluster "default" is running')


@pytest.mark.slow
def test_the_real_control_plane_where_it_was_never_built(konverge: Konverge, tmp_path: Path) -> None:
    done = konverge("local", "up", "--real", XDG_CACHE_HOME=str(tmp_path))

    check_one_line(done, 3, "make control-plane")


@pytest.mark.slow
def test_a_port_that_is_taken(konverge: Konverge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = konverge("local", "up", "--port", str(taken.getsockname()[1]))

    check_one_line(done, 1, "address already in use")


@pytest.mark.slow
def test_a_kubeconfig_of_the_users_own_is_not_overwritten(konverge: Konverge, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "https://example.com")

    done = konverge("local", "up", "--kubeconfig", config)

    check_one_line(done, 3, "found other clusters in it")


def test_a_command_line_that_makes_no_sense(konverge: Konverge) -> None:
    done = konverge("run")

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_verbose_shows_the_traceback(started_konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")

    quiet, verbose = started_konverge("crd", "broken.py"), started_konverge("crd", "-v", "broken.py")

    assert "Traceback" not in quiet.stderr
    assert "Traceback" in verbose.stderr
    assert verbose.stderr.splitlines()[-1] == quiet.stderr.strip()


def find_unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port: int = unused.getsockname()[1]
        return port


@pytest.fixture
def expired_server(tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig for a TLS server whose certificate ran out yesterday."""
    certificate, key = issue_expired_certificate()
    (tmp_path / "server.pem").write_bytes(key + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse_handshakes, args=(listening, context))
        thread.start()
        yield kubeconfig(tmp_path, f"https://127.0.0.1:{listening.getsockname()[1]}", certificate)
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def refuse_handshakes(listening: socket.socket, context: ssl.SSLContext) -> None:
    """Let each client look at the certificate, until the socket is shut down."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            connection.close()


def issue_expired_certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    end = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
    address = x509.IPAddress(IPv4Address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - datetime.timedelta(days=1))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    unprotected = serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return certificate.public_bytes(pem), key.private_bytes(pem, pkcs8, unprotected)


@pytest.mark.parametrize("text", ["metadata:\n  name: a\n  name: b\n", '{"kind": "A",\n"a": {\n"name": 1, "name": 2}}'])
def test_a_manifest_with_a_field_twice_is_refused_with_its_line(
    konverge: Konverge, operator_file: Path, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "owner.yaml"
    file.write_text(text)
    done = konverge("preview", operator_file, file)
    check_one_line(done, 3, f"{file}: expected YAML: duplicate field", "line 3")
