"""Kubeconfig files: the same results as kubectl, and clear errors for invalid files."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge._internal.client.credentials import AnonymousCredentials, BasicAuth, BearerToken, TokenFile
from konverge.client import ClusterConfig, load_kubeconfig
from konverge.errors import ConfigurationError

pytestmark = pytest.mark.anyio


V1 = "client.authentication.k8s.io/v1"
EXEC = {"command": "aws", "apiVersion": V1, "interactiveMode": "Never"}
OIDC: dict[str, Any] = {
    "name": "oidc",
    "config": {"idp-issuer-url": "https://issuer.example", "client-id": "konverge", "id-token": "s3cret"},
}


def oidc(fields: dict[str, str]) -> dict[str, Any]:
    return {"auth-provider": {"name": "oidc", "config": OIDC["config"] | fields}}


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def document(
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    current: str = "here",
    **fields: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": "one", "cluster": {"server": "https://one.example:6443"} | (cluster or {})}],
        "users": [{"name": "ann", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "ann"} | (context or {})}],
    } | fields


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write a kubeconfig with that content and name; return its path."""

    def write(content: Any, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


def load(path: Path | None, context: str | None = None, **env: str) -> ClusterConfig:
    return load_kubeconfig(path, context, env)


# The file and the context.


def test_the_current_context_is_chosen(write: Any) -> None:
    path = write(document(context={"namespace": "work"}))
    found = load(path)

    assert (found.server, found.namespace) == ("https://one.example:6443", "work")
    assert found.source == f'context "here" of {path}'


def test_another_context_can_be_named(write: Any) -> None:
    content = document()
    content["clusters"].append({"name": "two", "cluster": {"server": "http://two.example"}})
    content["contexts"].append({"name": "there", "context": {"cluster": "two"}})

    assert load(write(content), "there").server == "http://two.example"


def test_the_home_folder_is_looked_at_last(write: Any, tmp_path: Path) -> None:
    write(document(), ".kube/config")

    assert load(None, HOME=str(tmp_path)).server == "https://one.example:6443"


def test_the_first_of_several_files_to_say_something_wins(write: Any) -> None:
    first = write({"contexts": [{"name": "here", "context": {"cluster": "one", "namespace": "first"}}]}, "first")
    second = write(document(context={"namespace": "second"}), "second")
    missing = first.parent / "missing"
    found = load(None, KUBECONFIG=os.pathsep.join(map(str, [missing, first, second])))

    assert (found.server, found.namespace) == ("https://one.example:6443", "first")


def test_a_relative_path_is_relative_to_its_own_file(write: Any) -> None:
    write("authority", "folder/ca.crt")
    first = write(
        {
            "clusters": [
                {"name": "one", "cluster": document({"certificate-authority": "ca.crt"})["clusters"][0]["cluster"]}
            ]
        },
        "folder/first",
    )
    second = write(document(), "second")
    found = load(None, KUBECONFIG=f"{first}{os.pathsep}{second}")

    assert found.tls.authority == b"authority"


@pytest.mark.parametrize("empty", ["", "clusters: null\nusers: null\ncontexts: null\n"])
def test_an_empty_file_says_nothing(write: Any, empty: str) -> None:
    first, second = write(empty, "first"), write(document(), "second")

    assert load(None, KUBECONFIG=f"{first}{os.pathsep}{second}").server == "https://one.example:6443"


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(document()),
        yaml.safe_dump(document(), default_flow_style=True),  # begins like JSON, but is not JSON
    ],
)
def test_a_file_in_json_and_one_in_braces_are_read(write: Any, content: str) -> None:
    assert content.startswith("{")
    assert load(write(content)).server == "https://one.example:6443"


# The contents.


def test_data_wins_over_files(write: Any) -> None:
    tls = load(
        write(
            document(
                {"certificate-authority": "none", "certificate-authority-data": data("ca"), "tls-server-name": "api"},
                {
                    "client-certificate": "none",
                    "client-certificate-data": data("certificate"),
                    "client-key": "none",
                    "client-key-data": data("key"),
                },
            )
        )
    ).tls

    assert (tls.authority, tls.certificate, tls.key, tls.server_name) == (b"ca", b"certificate", b"key", "api")


async def test_a_token_is_sent(write: Any) -> None:
    found = load(write(document(user={"token": "t0ken"})))

    assert isinstance(found.credentials, BearerToken)
    assert (await found.credentials.get_identity()).headers == {"authorization": "Bearer t0ken"}


async def test_a_token_file_wins_over_a_token(write: Any) -> None:
    write("from the file", "token")
    found = load(write(document(user={"token": "t0ken", "tokenFile": "token"})))

    assert isinstance(found.credentials, TokenFile)
    assert (await found.credentials.get_identity()).headers == {"authorization": "Bearer from the file"}


async def test_a_password_is_sent(write: Any) -> None:
    found = load(write(document(user={"username": "ann", "password": "pa:ss"})))

    assert isinstance(found.credentials, BasicAuth)
    assert (await found.credentials.get_identity()).headers == {"authorization": f"Basic {data('ann:pa:ss')}"}


async def test_without_anything_nothing_is_sent(write: Any) -> None:
    found = load(write(document()))

    assert isinstance(found.credentials, AnonymousCredentials)
    assert (await found.credentials.get_identity()).headers == {}


def test_a_name_that_yaml_takes_for_a_number_is_a_name(write: Any) -> None:
    content = document(context={"user": 7})
    content["users"] = [{"name": 7, "user": {"token": 123}}]

    assert isinstance(load(write(content)).credentials, BearerToken)


def test_acting_as_somebody_else_is_asked_for(write: Any) -> None:
    user = {"token": "t", "as": "bob", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["x", "z"]}}

    assert load(write(document(user=user))).impersonation == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "x"),
        ("Impersonate-Extra-scopes", "z"),
    )


@pytest.mark.parametrize(
    ("cluster", "env", "proxy"),
    [
        ({"proxy-url": "http://proxy:1"}, {"HTTPS_PROXY": "http://other:2"}, "http://proxy:1"),
        ({}, {"HTTPS_PROXY": "http://other:2"}, "http://other:2"),
        ({}, {"HTTPS_PROXY": "http://other:2", "NO_PROXY": ".example"}, ""),
        ({}, {}, ""),
    ],
    ids=["named", "environment", "excepted", "none"],
)
def test_the_proxy_is_found(write: Any, cluster: dict[str, Any], env: dict[str, str], proxy: str) -> None:
    assert load(write(document(cluster)), **env).proxy_url == proxy


def test_a_server_without_a_scheme_speaks_tls(write: Any) -> None:
    assert load(write(document({"server": "one.example:6443/"}))).server == "https://one.example:6443"


def test_what_the_file_holds_itself_goes_before_what_would_have_to_be_fetched(write: Any) -> None:
    own = [{"token": "t"}, {"username": "ann"}, {"client-certificate-data": data("c"), "client-key-data": data("k")}]
    found = [load(write(document(user=user | {"exec": EXEC}))).credentials for user in own]

    assert [type(credentials) for credentials in found] == [BearerToken, BasicAuth, AnonymousCredentials]


def test_files_of_certificates_are_remembered_to_be_read_again(write: Any) -> None:
    folder = write("ca", "pki/ca.crt").parent
    for name in ("ann.crt", "ann.key"):
        write(name, f"pki/{name}")
    user = {"client-certificate": "pki/ann.crt", "client-key": "pki/ann.key"}
    tls = load(write(document({"certificate-authority": "pki/ca.crt"}, user))).tls

    assert (tls.authority_file, tls.certificate_file, tls.key_file) == (
        folder / "ca.crt",
        folder / "ann.crt",
        folder / "ann.key",
    )
    (folder / "ann.crt").write_text("renewed")
    assert tls.reload().certificate == b"renewed"


def test_a_file_that_is_being_written_changes_nothing(write: Any) -> None:
    file = write("ca", "ca.crt")
    tls = load(write(document({"certificate-authority": "ca.crt"}))).tls
    file.write_text("")

    assert tls.reload() == tls


# Invalid contents.


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (document(current="gone"), r'has no context "gone", which is its current context \(it has: here\)'),
        (document(current=""), r"has no current context: select one \(it has: here\)"),
        (document(current="", contexts=[]), r"has no current context: select one \(it has none\)"),
        (document(context={"cluster": "two"}), r'names the cluster "two", which .* does not have \(it has: one\)'),
        (document(context={"user": "bob"}), r'names the user "bob", which .* does not have \(it has: ann\)'),
        (document({"server": ""}), "has no server"),
        (document({"server": "http://127.0.0.1:99999"}), r"expected an http\(s\) URL"),
        (document({"server": "http://127.0.0.1:abc"}), r"expected an http\(s\) URL"),
        (document({"server": "http://[::1"}), r"expected an http\(s\) URL"),
        (document(user={"token": "a\nb"}), "expected printable ASCII characters"),
        (document({"server": "ftp://one"}), r"server: expected an http\(s\) URL"),
        (document({"server": f"http://{'a' * 70}.example"}), "its host is not a valid name"),
        (document({"server": "http://ann:hunter2@one"}), 'found "http://one": it contains a user or a password'),
        (document({"server": "http://ann:hunter2"}), r'found "http://ann:\.\.\."'),
        (document({"proxy-url": "socks5://proxy"}), "proxy-url: expected an http:// or https:// URL"),
        (document({"proxy-url": "http://["}), "its host or its port is invalid"),
        (document({"proxy-url": "http://ann:hunter2:3128"}), "its host or its port is invalid"),
        (document({"certificate-authority": "a\0b"}), "certificate-authority: expected a path"),
        (document(user={"token": "Ωmega"}), "expected printable ASCII characters"),
        (document(user={"as": "ann\r\nX-Evil: 1"}), "Impersonate-User: expected a header value"),
        (document(user={"exec": EXEC | {"args": ["a\0b"]}}), "expected text without NUL"),
        (document(user={"exec": EXEC | {"env": [{"name": "a", "value": "\0"}]}}), "expected text without NUL"),
        (document(user={"exec": EXEC | {"env": [{"name": "a=b", "value": "c"}]}}), "names in env without ="),
        (document(user=oidc({"idp-issuer-url": "http://["})), "idp-issuer-url: expected"),
        (document(user=oidc({"idp-certificate-authority-data": data("x")})), "oidc of user .* is not PEM"),
        (document(user=oidc({"idp-certificate-authority": "a\0b"})), "idp-certificate-authority: expected a path"),
        ("[" * 100_000, "is not YAML near line 1"),
        ("{a: " * 100_000, "is not YAML near line 1"),
        ("a: .nan", "is not YAML near line 1"),
        (document({"insecure-skip-tls-verify": True, "certificate-authority-data": data("x")}), "keep one of them"),
        (document({"certificate-authority-data": "%%"}), "certificate-authority-data is not base64"),
        (
            document({"certificate-authority": "missing.crt"}),
            "cannot read certificate-authority .*missing.crt: No such",
        ),
        (document(user={"client-certificate-data": data("x")}), "has a client-certificate but no client-key"),
        (document(user={"client-key-data": data("x")}), "has a client-key but no client-certificate"),
        (document(user={"exec": "aws"}), "exec of user .* must be a mapping"),
        (document(user={"exec": {"apiVersion": V1}}), "the exec plug-in of .* has no command"),
        (document(user={"exec": {"command": "aws"}}), r"apiVersion: expected .*/v1 or .*/v1beta1, found none"),
        (
            document(user={"exec": {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            'found "client.authentication.k8s.io/v1alpha1".*Update the plug-in',
        ),
        (
            document(user={"exec": {"command": "aws", "apiVersion": V1}}),
            r"interactiveMode: expected one of Never, IfAvailable, Always, found none; v1 requires it",
        ),
        (
            document(user={"exec": {"command": "aws", "apiVersion": V1, "interactiveMode": "Maybe"}}),
            r'interactiveMode: expected one of .*, found "Maybe"',
        ),
        (document(user={"exec": EXEC | {"env": [7]}}), "env: expected entries with a name and a value"),
        (document(user={"exec": EXEC | {"args": "get-token"}}), "args: expected a list"),
        (document(user={"exec": EXEC, "auth-provider": OIDC}), "an exec plug-in and an auth-provider: keep one"),
        (document(user={"auth-provider": {"name": "gcp"}}), 'the auth-provider "gcp": expected oidc'),
        (document(user=oidc({"idp-issuer-url": "nowhere"})), r"idp-issuer-url: expected an http\(s\) URL"),
        (document(user=oidc({"client-id": ""})), "has no client-id"),
        (document(user=oidc({"id-token": ""})), "neither an id-token nor a refresh-token: log in first"),
        (document(user=oidc({"idp-certificate-authority-data": "%%"})), "authority-data is not base64"),
        (document(user=oidc({"idp-certificate-authority": "none.crt"})), "cannot read idp-certificate-authority none"),
        (document(clusters={"one": {}}), "clusters: expected a list"),
        (document(users=[7]), "users: expected entries with a name and a user"),
        ("- a list", "not a kubeconfig"),
        ("a: [", "is not YAML near line 2"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(write: Any, content: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as raised:
        load(write(content))
    assert "\n" not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_the_name_of_an_extra_is_escaped_as_a_header_wants_it(write: Any) -> None:
    found = load(write(document(user={"as": "ann", "as-user-extra": {"example.org/a b": ["x"]}})))

    assert found.impersonation[1:] == (("Impersonate-Extra-example.org%2Fa%20b", "x"),)


def test_an_unknown_context_is_told_with_those_that_exist(write: Any) -> None:
    with pytest.raises(ConfigurationError, match=r'has no context "there" \(it has: here\)'):
        load(write(document()), "there")


@pytest.mark.parametrize(
    ("env", "looked"),
    [({"KUBECONFIG": "/no/a:/no/b"}, "/no/a, /no/b"), ({"HOME": "/no"}, "/no/.kube/config"), ({}, "HOME is not set")],
    ids=["KUBECONFIG", "HOME", "nothing"],
)
def test_where_it_was_looked_for_in_vain_is_told(env: dict[str, str], looked: str) -> None:
    with pytest.raises(ConfigurationError, match="no kubeconfig: searched ") as raised:
        load(None, **env)
    assert looked in str(raised.value)


@pytest.mark.parametrize(
    "user",
    [
        {"token": "s3cret"},
        {"username": "ann", "password": "s3cret"},
        {"client-key-data": data("s3cret"), "client-certificate-data": data("x")},
        {"exec": EXEC | {"args": ["--token=s3cret"], "env": [{"name": "X", "value": "s3cret"}]}},
        {"auth-provider": OIDC},
    ],
    ids=["token", "password", "key", "exec", "oidc"],
)
def test_no_representation_shows_a_secret(write: Any, user: dict[str, Any]) -> None:
    found = load(write(document(user=user)))

    text = f"{found!r} {found.credentials!r} {found.tls!r}"
    assert "s3cret" not in text
    assert data("s3cret") not in text


def test_a_proxy_of_another_kind_in_the_environment_is_told(write: Any) -> None:
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY .* expected an http:// or https:// URL.*NO_PROXY"):
        load(write(document()), HTTPS_PROXY="socks5://proxy:1080")


def test_a_broken_file_is_not_quoted(write: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(write("users: [{user: {token: s3cret"))
    assert "s3cret" not in str(raised.value)
    assert raised.value.__cause__ is None
