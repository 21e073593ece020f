"""Descriptions of conditions; certificates; labels for long names."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from konverge_box._internal.file import ConditionSpec
from konverge_box._internal.steps import StepError
from konverge_box._internal.steps.labels import to_label_value
from konverge_box._internal.steps.tls_secret import build_certificate_data
from konverge_box._internal.steps.wait_conditions import describe_condition
from konverge_box.expressions import reveal_sensitive, to_sensitive
from tests.box.steps.sample_plans import NOW


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"field": "spec.a"}, "spec.a exists"),
        ({"field": "spec.a", "exists": False}, "spec.a does not exist"),
        ({"field": "spec.a", "notExists": True}, "spec.a does not exist"),
        ({"field": "{{ spec.a | len }}", "min": 2}, "{{ spec.a | len }} is at least 2"),
        ({"field": "spec.a", "in": ["x", "y"]}, 'spec.a is in ["x", "y"]'),
        ({"field": "spec.a", "equals": "x", "negate": True}, "not (spec.a equals x)"),
        ({"dayOfWeek": "weekend"}, "the day of the week weekend"),
        ({"field": "spec.a", "cron": "0 9 * * *"}, "spec.a exists and the schedule 0 9 * * *"),
        ({"time": {"after": "09:00"}}, 'the time of {"after": "09:00"}'),
    ],
)
def test_a_condition_is_told_in_the_words_of_the_file(declared: dict[str, Any], words: str) -> None:
    assert describe_condition(msgspec.convert(declared, ConditionSpec)) == words


def test_a_long_condition_is_cut() -> None:
    assert len(describe_condition(ConditionSpec(field="spec.a", equals="x" * 1000))) == 200


def test_a_certificate_is_of_the_authority_beside_it_and_of_the_key() -> None:
    data = reveal_sensitive(build_certificate_data(["site", ["a.example", "10.0.0.1"]], timedelta(days=3), NOW, "tls"))
    pems = {name: base64.b64decode(text) for name, text in data.items()}
    own = x509.load_pem_x509_certificate(pems["tls.crt"])
    authority = x509.load_pem_x509_certificate(pems["ca.crt"])

    verifier = PolicyBuilder().store(Store([authority])).time(NOW).build_server_verifier(x509.DNSName("a.example"))
    assert verifier.verify(own, []) == [own, authority]
    assert own.not_valid_after_utc == NOW + timedelta(days=3)
    assert own.subject.rfc4514_string() == "CN=site"
    assert b"PRIVATE KEY" in pems["tls.key"]


def test_without_further_names_a_server_is_met_under_its_common_name() -> None:
    data = reveal_sensitive(build_certificate_data(["site.example", []], timedelta(days=3), NOW, "tls"))
    own = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))

    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["site.example"]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["", []], r"tls\.commonName: expected text of 1 to 64 characters"),
        (["x" * 65, []], r"tls\.commonName: expected text of 1 to 64 characters"),
        (["a", [3]], r"tls\.dnsNames: expected a list of non-empty texts"),
        (["a", ["ö.example"]], "tls: cannot create a certificate for these names"),
        ([to_sensitive("hunter2"), []], "tls: expected no value from a Secret: certificates are not confidential"),
    ],
)
def test_names_that_no_certificate_can_have_are_refused(names: list[Any], problem: str) -> None:
    with pytest.raises(StepError, match=problem):
        build_certificate_data(names, timedelta(days=3), NOW, "tls")


def test_a_name_that_is_no_label_is_cut_and_told_apart_by_a_hash() -> None:
    assert to_label_value("websites") == "websites"
    first, second = to_label_value("a." * 100 + "x"), to_label_value("a." * 100 + "y")
    assert first != second
    assert len(first) <= 63
    assert first.startswith("a-a-a")
