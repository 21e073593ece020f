"""A Secret's values: encoded where the API wants it, and shown nowhere."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from konverge.errors import KonvergeError
from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import ConfigMap, Operation, Secret, SecretMutator, Static, Workload
from tests.primitives.objects import build_named

PASSWORD = "hunter2-é"


def test_a_secret_is_ready_by_existing() -> None:
    secret = Secret(build_named())
    assert secret.converging_status({}, Operation.CREATED) is None
    assert secret.grace_status({}) is None


def test_bytes_in_data_are_encoded() -> None:
    assert Secret(build_named(data={"token": b"abc"})).render()["data"] == {"token": "YWJj"}


def test_entries_have_shortcuts() -> None:
    def change(m: SecretMutator) -> None:
        m.set_data("token", b"abc")
        m.remove_data("old")
        m.set_string_data("user", "web")
        m.remove_string_data("gone")
        m.edit_data(lambda data: data.set("more", b"abc"))

    baseline = build_named(data={"old": "YWJj"}, stringData={"gone": "x"})
    desired = Secret(baseline, mutations=Mutation("change", change)).render()

    assert desired["data"] == {"token": "YWJj", "more": "YWJj"}
    assert desired["stringData"] == {"user": "web"}


@pytest.mark.parametrize("text", ["YWJj", "", "YWJj\nYWJj\n"])
def test_base64_text_is_accepted(text: str) -> None:
    assert Secret(build_named(data={"token": text})).errors == ()


def test_entries_that_the_api_refuses_are_mistakes_by_key() -> None:
    secret = Secret(build_named(data={"password": PASSWORD, "pin": 1234}, stringData={"token": PASSWORD.encode()}))
    assert secret.errors == (
        "data['password']: expected base64; pass bytes here, or the plain text in stringData",
        "data['pin']: expected bytes or a base64 string, found int",
        "stringData['token']: expected a string, found bytes",
    )


def set_number(m: SecretMutator) -> None:
    m.edit_data(lambda data: data.raw().update(pin=1234))


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        (Secret(build_named(), mutations=Mutation("pin", set_number)), "data['pin']: expected a string, found int"),
        (
            Static({"apiVersion": "v1", "kind": "Secret", **build_named(data={"pin": [1234]})}),
            "data['pin']: expected a string",
        ),
        (
            Static({"apiVersion": "v1", "kind": "Secret", **build_named(data=[1234])}),
            "data: expected a mapping, found list",
        ),
    ],
)
def test_what_the_server_would_refuse_with_the_value_is_refused_without(secret: Secret | Static, told: str) -> None:
    with pytest.raises(KonvergeError, match=re.escape(told)) as raised:
        secret.render()
    assert "1234" not in str(raised.value)


def fails_with_the_value(*_: object) -> Any:
    raise ValueError(f"not a port: {PASSWORD}")


def fails_with_the_value_as_its_cause(*_: object) -> Any:
    raise KonvergeError("the port is no number") from ValueError(PASSWORD)


def edit_that_fails(m: SecretMutator) -> None:
    m.edit_data(fails_with_the_value)


def build_workload() -> Workload:
    return Workload(
        {"apiVersion": "v1", "kind": "Secret", **build_named()},
        converging_status=fails_with_the_value,
        grace_status=fails_with_the_value,
        suspension_status=fails_with_the_value,
    )


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(
            lambda: Secret(build_named(), mutations=Mutation("m", fails_with_the_value)).render(), id="mutation"
        ),
        pytest.param(lambda: Secret(build_named(), mutations=Mutation("m", edit_that_fails)).render(), id="edit"),
        pytest.param(lambda: Secret(build_named(), guard=fails_with_the_value).check_guard(), id="guard"),
        pytest.param(
            lambda: Secret(build_named(), extract=fails_with_the_value).extract(build_named()), id="extractor"
        ),
        pytest.param(lambda: build_workload().converging_status(build_named(), Operation.NONE), id="converging_status"),
        pytest.param(lambda: build_workload().grace_status(build_named()), id="grace_status"),
        pytest.param(lambda: build_workload().suspension_status(build_named()), id="suspension_status"),
    ],
)
def test_errors_of_the_author_s_functions_show_no_values(
    use: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KonvergeError, match="ValueError .its text is withheld") as raised:
        use()
    logging.getLogger("test").error("failed", exc_info=raised.value)
    assert PASSWORD not in "".join(traceback.format_exception(raised.value))
    assert PASSWORD not in caplog.text


def test_errors_of_konverge_s_tree_keep_their_text_but_not_their_cause() -> None:
    with pytest.raises(KonvergeError, match="intent for m: the port is no number") as raised:
        Secret(build_named(), mutations=Mutation("m", fails_with_the_value_as_its_cause)).render()
    assert PASSWORD not in "".join(traceback.format_exception(raised.value))


def test_reprs_show_no_values() -> None:
    secret = Secret(build_named(stringData={"password": PASSWORD}, data={"token": PASSWORD.encode()}))
    assert repr(secret) == "Secret(v1/Secret/default/web)"


def test_text_that_is_no_unicode_is_a_mistake_that_does_not_quote_it() -> None:
    assert Secret(build_named(stringData={"password": "hunter2\udc80"})).errors == (
        "expected a JSON object: UnicodeEncodeError",
    )


def test_the_hash_is_the_same_for_what_is_sent_and_what_is_stored() -> None:
    sent: Object = build_named(data={"a": "eA==", "b": "eQ==", "c": "YWJj\nZGVm\n"}, stringData={"b": "z"})
    stored: Object = build_named(data={"b": "eg==", "a": "eA==", "c": "YWJjZGVm"})
    assert Secret.hash_data(sent) == Secret.hash_data(stored)
    assert Secret(sent).hash_desired_data() == Secret.hash_data(stored)


def test_a_config_map_s_errors_do_show_their_text() -> None:
    with pytest.raises(KonvergeError, match="ValueError: not a port"):
        ConfigMap(build_named(), mutations=Mutation("m", fails_with_the_value)).render()
