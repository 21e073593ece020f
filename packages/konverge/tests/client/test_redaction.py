"""Probable secrets in texts of other programs are hidden; helpful words stay."""

from __future__ import annotations

import pytest

from konverge._internal.client.redaction import find_secret_values, redact


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"token": "hunter2hunter2"}', '{"token": ***}'),
        (r"{\"token\": \"hunter2 hunter2\"}", r"{\"token\": ***}"),
        ('"token": "hunter2 cut off', '"token": ***'),
        ("AWS_SECRET_ACCESS_KEY: hunter2", "AWS_SECRET_ACCESS_KEY: ***"),
        ("> Authorization: Basic hunter2hunter2", "> Authorization: ***"),
        ("sent Basic hunter2hunter2 there", "sent Basic *** there"),
        ("client_secret: hunter2 is wrong", "client_secret: *** is wrong"),
        ("tool --id-token hunter2 --region eu", "tool --id-token *** --region eu"),
        ("cannot reach https://u:hunter2@idp/", "cannot reach https://***@idp/"),
        ("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY----- x", "*** x"),
        ("Token has expired: log in", "Token has expired: log in"),
    ],
)
def test_a_secret_is_hidden_by_its_look_or_its_name(text: str, left: str) -> None:
    assert redact(text) == left


def test_the_values_of_secret_variables_are_hidden_wherever_they_are() -> None:
    environment = {
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "TOKEN_FILE": "/run/token",
        "HTTPS_PROXY": "http://u:pass4@p",
        "HOME": "/home/ann",
    }

    assert set(find_secret_values(environment)) == {"hunter2", "pass4"}
    assert redact("no hunter2 for pass4 in /home/ann", find_secret_values(environment)) == "no *** for *** in /home/ann"


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["eyJ", "secret", 'token:"', "://", "--a-", "basic "])
def test_a_long_complaint_takes_no_long_time(piece: str) -> None:
    assert redact(piece * 150_000)  # a pattern that runs to the end from each letter would take an hour
