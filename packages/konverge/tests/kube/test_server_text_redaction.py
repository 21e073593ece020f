"""The safe part of a server's error that may quote the value of a Secret."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from konverge._internal.kube.secret_redaction import holds_secret
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.kube.server_text_redaction import hide_values, is_secret_path, withhold_text, withhold_warning
from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
)

VALUE = "9f8e7d6c5b4a"
PATH = "/api/v1/namespaces/default/secrets/db"
SENT = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "db", "namespace": "default"},
    "data": {"token": base64.b64encode(VALUE.encode()).decode()},
}
POLICY = "ValidatingAdmissionPolicy 'strong' with binding 'all'"
REASON = "it may contain the value of a Secret; run the request with kubectl to see it"
ADVICE = f"Its message is withheld: {REASON}"

KEPT = [
    NotFoundError('secrets "db" not found'),
    AlreadyExistsError('secrets "db" already exists'),
    ForbiddenError(
        'secrets "db" is forbidden: User "system:serviceaccount:ops:konverge" cannot patch resource "secrets" in API '
        'group "" in the namespace "default"'
    ),
    ForbiddenError(
        'secrets is forbidden: User "me" cannot list resource "secrets" in API group "" at the cluster scope'
    ),
    ForbiddenError(
        'secrets "db" is forbidden: unable to create new content in namespace default because it is being terminated'
    ),
    ForbiddenError(
        'secrets "db" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=3, limited: secrets=3'
    ),
    ConflictError(
        'Operation cannot be fulfilled on secrets "db": the object has been modified; please apply your changes to the '
        "latest version and try again"
    ),
    TooManyRequestsError("Too many requests, please try again later."),
    ServerError("etcdserver: leader changed"),
]


@pytest.mark.parametrize("error", KEPT, ids=[error.message[:30] for error in KEPT])
def test_what_holds_nothing_but_names_is_said_as_the_server_says_it(error: ApiError) -> None:
    filtered = withhold_text(error, sent=SENT, path=PATH)

    assert (type(filtered), filtered.message, filtered.code) == (type(error), error.message, error.code)


REFUSED: list[tuple[ApiError, str]] = [
    (
        InvalidError(f'secrets "db" is forbidden: {POLICY} denied request: {VALUE}'),
        f"the server rejected the request (422 Invalid), because of {POLICY}. {ADVICE}",
    ),
    (
        ForbiddenError(f'admission webhook "check.test" denied the request: found {VALUE}', reason=VALUE),
        f'the server rejected the request (403 Forbidden), because of admission webhook "check.test". {ADVICE}',
    ),
    (
        ServerError(f'Internal error occurred: failed calling webhook "check.test": {VALUE}'),
        f'the server rejected the request (500 InternalError), because of webhook "check.test". {ADVICE}',
    ),
    (
        InvalidError(
            f'Secret "db" is invalid: type: Invalid value: "{VALUE}": field is immutable',
            details={
                "name": "db",
                "kind": "Secret",
                "uid": VALUE,
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "field": "type",
                        "message": f'Invalid value: "{VALUE}": field is immutable',
                    },
                    {"reason": "FieldValueRequired", "field": "data[tls.crt]", "message": "Required value"},
                    {"reason": VALUE, "field": VALUE, "message": VALUE},
                ],
            },
        ),
        "the server rejected the request "
        "(422 Invalid: type: Invalid value: field is immutable, data[tls.crt]: Required value). " + ADVICE,
    ),
    (
        ForbiddenError(f'admission webhook "{VALUE}" denied the request'),
        f"the server rejected the request (403 Forbidden). {ADVICE}",
    ),
    (
        ForbiddenError(
            f'secrets "db" is forbidden: User "{VALUE}" cannot get resource "secrets" in API group "" at the '
            "cluster scope"
        ),
        f"the server rejected the request (403 Forbidden). {ADVICE}",
    ),
]


@pytest.mark.parametrize(("error", "expected"), REFUSED)
def test_the_rest_is_withheld_and_what_can_be_told_is_told(error: ApiError, expected: str) -> None:
    filtered = withhold_text(error, sent=SENT, path=PATH)

    assert str(filtered) == expected
    assert VALUE not in f"{filtered!r} {filtered.causes} {filtered.details} {filtered.to_status()}"
    assert filtered.is_withheld
    assert withhold_text(filtered) is filtered


def test_who_tries_again_when_finds_what_that_takes() -> None:
    error = TooManyRequestsError(VALUE, retry_after_seconds=7, details={"name": "db", "kind": "secrets"})

    filtered = withhold_text(error, path=PATH)

    assert (filtered.retry_after_seconds, filtered.reason, filtered.details) == (
        7,
        "TooManyRequests",
        {"name": "db", "kind": "secrets"},
    )


def test_a_conflict_of_managers_keeps_who_and_where() -> None:
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl" using v1', "field": ".data.token"}

    filtered = withhold_text(ConflictError(f"Apply failed: {VALUE}", details={"causes": [cause]}), sent=SENT, path=PATH)

    assert [(each.field, each.message) for each in filtered.causes] == [
        (".data.token", 'conflict with "kubectl" using v1')
    ]


def test_a_warning_names_who_warns() -> None:
    text = f"Validation failed for ValidatingAdmissionPolicy 'strong' with binding 'all': {VALUE}"

    assert withhold_warning(text, sent=SENT, path=PATH) == (
        f"a message because of ValidatingAdmissionPolicy 'strong' with binding 'all', which is withheld: {REASON}"
    )


def test_known_values_are_hidden_everywhere_in_an_error_about_another_object() -> None:
    values = SecretValues()
    values.add(SENT)
    cause = {"reason": "FieldValueInvalid", "message": f'Invalid value: "{VALUE}"', "field": f"data[{VALUE}]"}
    error = InvalidError(f'ConfigMap "a" is invalid: data: "{VALUE}"', details={"name": "a", "causes": [cause]})

    filtered = hide_values(
        error, values, sent={"metadata": {"name": "a"}}, path="/api/v1/namespaces/default/configmaps/a"
    )

    assert filtered.message == 'ConfigMap "a" is invalid: data: "***"'
    assert (filtered.causes[0].message, filtered.causes[0].field) == ('Invalid value: "***"', "data[***]")


WORDS = (
    "FieldValueForbidden",
    "NamespaceTerminating",
    "Forbidden",
    "causes",
    "reason",
    "immutable",
    "field is immutable",
)


@pytest.mark.parametrize("hide", [hide_values, withhold_text])
def test_a_secret_that_holds_words_of_kubernetes_changes_nothing_of_what_is_decided_by_them(hide: Any) -> None:
    values = SecretValues()
    for word in WORDS:
        values.add_text(word)
    causes = [
        {"reason": "NamespaceTerminating", "message": "namespace default is being terminated", "field": ""},
        {"reason": "FieldValueForbidden", "message": "Forbidden: field is immutable when it is set", "field": "data"},
    ]
    error = ForbiddenError("Forbidden: field is immutable", details={"causes": causes})

    filtered = hide(error, values=values, sent={"data": {}}, path="/api/v1/namespaces/default/configmaps/a")

    assert (type(filtered), filtered.reason, filtered.is_namespace_terminating) == (ForbiddenError, "Forbidden", True)
    assert (filtered.causes[1].reason, filtered.causes[1].field) == ("FieldValueForbidden", "data")
    assert "immutable" in filtered.causes[1].message


def test_an_error_without_known_values_stays_as_it_is() -> None:
    error = InvalidError("spec.replicas: Invalid value: -1")

    assert hide_values(error, SecretValues()) is error


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/secrets", True),
        ("/api/v1/namespaces/default/secrets", True),
        ("/api/v1/namespaces/default/secrets/db", True),
        ("/api/v1/namespaces/secrets", False),
        ("/api/v1/namespaces/secrets/configmaps/secrets", False),
        ("/apis/apps/v1/namespaces/default/secrets/db", False),
        ("/api", False),
    ],
)
def test_which_paths_are_those_of_secrets(path: str, expected: bool) -> None:
    assert is_secret_path(path) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (SENT, True),
        ({"items": [SENT]}, True),
        ({"spec": {"template": SENT}}, True),
        ({"kind": "Secret"}, False),
        (None, False),
    ],
)
def test_what_holds_a_secret(value: Any, expected: bool) -> None:
    assert holds_secret(value) is expected
