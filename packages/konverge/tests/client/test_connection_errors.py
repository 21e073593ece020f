"""The messages of connection errors. ``test_http_transport`` has those that a server on loopback can cause."""

from __future__ import annotations

import ssl
from datetime import timedelta

import aiohttp
import pytest

from konverge._internal.client.connection_errors import build_connection_error
from konverge._internal.client.credentials import AnonymousCredentials
from konverge.client import ClusterConfig, TlsConfig
from konverge.errors import ConnectionFailedError, NotConnectedError, UntrustedServerError
from tests.client.certificates import NOW, CertificateAuthority, KeyPair

AUTHORITY = CertificateAuthority()
VALID = AUTHORITY.issue()
EXPIRED = AUTHORITY.issue(not_after=NOW - timedelta(hours=1))


def connect_and_fail(error: Exception, own: KeyPair = VALID) -> ConnectionFailedError:
    config = ClusterConfig(
        "https://api.example",
        'context "here" of config',
        tls=TlsConfig(AUTHORITY.certificate, own.certificate, own.key),
        credentials=AnonymousCredentials('the client certificate of user "ann"'),
    )
    return build_connection_error(error, config, "GET /api", 5.0, NOW)


def wrap_as_aiohttp(error: OSError) -> aiohttp.ClientConnectorError:
    """Wrap an error of a connection attempt like aiohttp."""
    return aiohttp.ClientConnectorError(None, error)  # type: ignore[arg-type]  # no code reads the key


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("reason", "own", "advice"),
    [
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", EXPIRED, "The client certificate expired at "),
        ("TLSV1_ALERT_UNKNOWN_CA", VALID, "check that it is for this cluster"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", VALID, "check that it is for this cluster"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", VALID, "check that it is for this cluster"),
    ],
)
def test_an_alert_about_our_own_certificate_names_it(reason: str, own: KeyPair, advice: str) -> None:
    error = connect_and_fail(wrap_as_aiohttp(tls_error(reason)), own)

    assert isinstance(error, UntrustedServerError)
    assert 'does not accept the client certificate of user "ann"' in str(error)
    assert reason in str(error)
    assert advice in str(error)


def test_another_tls_failure_gives_openssls_word_for_it() -> None:
    error = connect_and_fail(wrap_as_aiohttp(tls_error("SSLV3_ALERT_HANDSHAKE_FAILURE")))

    assert isinstance(error, UntrustedServerError)
    assert "TLS with the API server https://api.example failed: SSLV3_ALERT_HANDSHAKE_FAILURE" in str(error)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connection refused"), ": connection refused ("),
        (OSError(113, "No route to host"), ": No route to host ("),
        (ConnectionResetError(), ": the connection was closed ("),
        (OSError("odd"), ": odd ("),
    ],
    ids=["refused", "no route", "no words", "some words"],
)
def test_a_connection_that_does_not_come_about_gives_the_systems_word_for_it(error: OSError, words: str) -> None:
    found = connect_and_fail(wrap_as_aiohttp(error))

    assert isinstance(found, NotConnectedError)
    assert words in str(found)


def test_a_connection_that_takes_too_long_is_no_request_that_does() -> None:
    connecting, waiting = connect_and_fail(aiohttp.ConnectionTimeoutError()), connect_and_fail(TimeoutError())

    assert isinstance(connecting, NotConnectedError)
    assert "no connection in time" in str(connecting)
    assert not isinstance(waiting, NotConnectedError)
    assert "GET /api: the API server https://api.example did not answer within 5 s" in str(waiting)
