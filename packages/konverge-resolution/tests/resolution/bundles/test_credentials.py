"""What a registry wants to see, which Secret has it, and who else may see it."""

from __future__ import annotations

import json
from time import process_time

import pytest

from konverge_resolution import ResolutionError
from konverge_resolution._internal.resolvers.bundles.auth_challenges import (
    BasicChallenge,
    BearerChallenge,
    may_receive_password,
    parse_challenges,
    parse_token,
)
from konverge_resolution._internal.resolvers.bundles.image_reference import parse_image
from konverge_resolution._internal.resolvers.bundles.keychains import RegistryLogin, find_login
from tests.resolution.bundles.sample_images import build_docker_config

BEARER = BearerChallenge("https://auth.example.com/token", "registry.example.com")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('Basic realm="a registry"', BasicChallenge()),
        ("basic", BasicChallenge()),
        (
            'Bearer realm="https://auth.example.com/token",service="registry.example.com",scope="repository:a:pull"',
            BEARER,
        ),
        (
            'Basic realm="x, y", BEARER scope="repository:a:pull" , service=registry.example.com, '
            'realm="https://auth.example.com/token"',
            BEARER,
        ),
        ('Bearer realm="ftp://auth.example.com"', None),
        ('Bearer realm="https://user@auth.example.com/"', None),
        ('Bearer realm="https://auth.example.com/ x"', None),
        ('Bearer realm="https://auth.example.com:x/"', None),
        ('Bearer service="a"', None),
        ('Negotiate abc, Digest realm="a"', None),
        ("", None),
        ("=,=,=" * 5000, None),
    ],
)
def test_a_challenge_is_read_in_one_way(header: str, expected: object) -> None:
    assert parse_challenges(header) == expected


def test_a_challenge_of_blanks_is_read_in_no_time() -> None:
    begun = process_time()
    assert parse_challenges("Basic a=b" + " " * 8000 + '"') == BasicChallenge()
    assert process_time() - begun < 0.25  # a second and more, when blanks can be taken in two ways


def test_a_token_is_asked_for_to_read_one_repository_whatever_the_registry_asks_for() -> None:
    challenge = parse_challenges(
        'Bearer realm="https://a.example/token?x=1",service="s",scope="repository:other:pull,push,delete"'
    )
    assert isinstance(challenge, BearerChallenge)
    assert challenge.build_url("team/a") == "https://a.example/token?x=1&service=s&scope=repository%3Ateam%2Fa%3Apull"


@pytest.mark.parametrize(
    ("realm", "may"),
    [
        ("https://registry.example.com/token", True),
        ("https://registry.example.com:443/token", True),
        ("https://auth.example.com/token", True),
        ("https://other.example.com/token", False),
        ("https://registry.example.com.evil.example/token", False),
        ("https://registry.example.com:8443/token", False),
        ("http://registry.example.com/token", False),
    ],
)
def test_a_password_is_shown_to_the_registry_itself_and_to_whom_the_operator_names(realm: str, may: bool) -> None:
    realms = ("registry.example.com=auth.example.com", "elsewhere.example.com=other.example.com")
    challenge = BearerChallenge(realm)
    assert may_receive_password(challenge, "registry.example.com", realms, is_plain_http=False) is may


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"token": 1}', b'{"token": "a\\nX: y"}', b'{"token": "a b"}'])
def test_what_is_no_token_is_not_sent(body: bytes) -> None:
    with pytest.raises(ResolutionError, match="expected a JSON object with a token"):
        parse_token(body, what="realm")


def test_a_token_has_two_names() -> None:
    assert parse_token(b'{"token": "a"}', what="") == parse_token(b'{"access_token": "a"}', what="") == "Bearer a"


LOGIN = RegistryLogin("me", "pass:word")


@pytest.mark.parametrize(
    ("entry", "image", "fits"),
    [
        ("registry.example.com", "registry.example.com/team/a", True),
        ("https://registry.example.com/v2/", "registry.example.com/team/a", True),
        ("registry.example.com:443", "registry.example.com/team/a", True),
        ("registry.example.com/team", "registry.example.com/team/a", True),
        ("registry.example.com/te", "registry.example.com/team/a", False),
        ("registry.example.com/other", "registry.example.com/team/a", False),
        ("registry.example.com", "registry.example.com:5000/a", False),
        ("registry.example.com:5000", "registry.example.com/a", False),
        ("example.com", "registry.example.com/a", False),
        ("*.example.com", "registry.example.com/a", False),
        ("registry.example.com", "registry.example.com.evil.example/a", False),
        ("https://index.docker.io/v1/", "team/a", True),
        ("docker.io", "index.docker.io/team/a", True),
        ("", "team/a", False),
    ],
)
def test_a_credential_is_for_exactly_the_registry_that_it_names(entry: str, image: str, fits: bool) -> None:
    found = find_login(parse_image(image), build_docker_config(entry, "me", "pass:word"))
    assert found == (LOGIN if fits else None)


def test_the_longest_path_counts() -> None:
    auths = {"a.example": {"username": "u", "password": "1"}, "a.example/b": {"username": "u", "password": "2"}}
    secret = {".dockerconfigjson": json.dumps({"auths": auths}).encode()}
    assert find_login(parse_image("a.example/b/c"), secret) == RegistryLogin("u", "2")
    assert find_login(parse_image("a.example/d"), secret) == RegistryLogin("u", "1")


def test_the_old_form_is_read_too() -> None:
    secret = {".dockercfg": json.dumps({"a.example": {"username": "u", "password": "1"}}).encode()}
    assert find_login(parse_image("a.example/b"), secret) == RegistryLogin("u", "1")


@pytest.mark.parametrize(
    "entry",
    [b"", b"[]", b'{"auths": []}', b'{"auths": {"a.example": "x"}}', b'{"auths": {"a.example": {"auth": "!"}}}',
     b'{"auths": {"a.example": {}}}', b'{"auths": {"a.example": {"username": "a:b", "password": "c"}}}',
     b'{"auths": {"a.example": {"username": "a\\n", "password": "c"}}}'],
)  # fmt: skip
def test_what_is_no_credential_is_none(entry: bytes) -> None:
    assert find_login(parse_image("a.example/b"), {".dockerconfigjson": entry}) is None


def test_a_login_shows_nothing_of_itself() -> None:
    assert "pass" not in repr(LOGIN)
    assert "me" not in repr(LOGIN)
