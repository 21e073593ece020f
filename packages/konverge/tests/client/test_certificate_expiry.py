"""The expiry of a certificate, parsed without a library."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.client.certificate_expiry import parse_certificate_expiry
from tests.client.certificates import CertificateAuthority

AUTHORITY = CertificateAuthority()


@pytest.mark.parametrize(
    "end",
    [datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC), datetime(2061, 5, 6, tzinfo=UTC)],
    ids=["UTCTime", "GeneralizedTime"],
)
def test_the_end_of_validity_is_read(end: datetime) -> None:
    assert parse_certificate_expiry(AUTHORITY.issue(not_after=end).certificate) == end


def test_the_first_of_a_chain_counts() -> None:
    end = datetime(2031, 5, 6, tzinfo=UTC)

    assert parse_certificate_expiry(AUTHORITY.issue(not_after=end).certificate + AUTHORITY.certificate) == end


@given(st.binary(max_size=200))
def test_nonsense_has_no_end(content: bytes) -> None:
    assert parse_certificate_expiry(content) is None


@given(st.binary(max_size=60))
def test_nonsense_in_a_certificate_has_no_end(content: bytes) -> None:
    pem = b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(content) + b"\n-----END CERTIFICATE-----\n"

    assert parse_certificate_expiry(pem) is None
