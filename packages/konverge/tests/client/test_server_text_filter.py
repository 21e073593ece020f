"""A client never shows a server's text that may contain the value of a Secret."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest

from konverge._internal.kube.server_text_redaction import withhold_server_texts
from konverge.client import Client, ServerWarning
from konverge.clock import SimulatedClock
from konverge.errors import ApiError, ExpiredError, InvalidError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.client.scripted_transport import DISCOVERY, ScriptedResponse, ScriptedStream, ScriptedTransport

pytestmark = pytest.mark.anyio

VALUE = "4c9d1e7a0b52"
SECRET = GroupVersionKind("", "v1", "Secret")
KEY = ObjectKey("default", "db")


def secret(**fields: Any) -> Object:
    metadata = {"name": "db", "namespace": "default", "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **fields}


def config_map() -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy", "namespace": "default"}}


READ = secret(data={"token": base64.b64encode(VALUE.encode()).decode()})


VERSIONS = DISCOVERY["/api"]["items"][0]["versions"]
SECRETS = {
    "resource": "secrets",
    "responseKind": {"group": "", "version": "v1", "kind": "Secret"},
    "scope": "Namespaced",
    "verbs": ["get", "list", "watch"],
}
CORE = {"version": "v1", "resources": [*VERSIONS[0]["resources"], SECRETS]}
SERVED = {**DISCOVERY, "/api": {**DISCOVERY["/api"], "items": [{"metadata": {}, "versions": [CORE]}]}}


def refusal(*, code: int = 422) -> ScriptedResponse:
    cause = {"reason": "FieldValueInvalid", "field": "data.token", "message": f'Invalid value: "{VALUE}"'}
    status = {"message": f'found "{VALUE}"', "reason": "Invalid", "details": {"causes": [cause]}}
    return ScriptedResponse(code, json=status, headers={"warning": f'299 - "found {VALUE}"'})


def client(*answers: ScriptedResponse | ScriptedStream, heard: list[ServerWarning] | None = None) -> Client:
    on_warning = None if heard is None else heard.append
    return Client(ScriptedTransport(*answers, discovery=SERVED), clock=SimulatedClock(), on_warning=on_warning)


VERBS: dict[str, Any] = {
    "create": lambda it: it.create(secret(stringData={"token": VALUE})),
    "update": lambda it: it.update(READ),
    "apply": lambda it: it.apply(READ, field_manager="me"),
    "merge patch": lambda it: it.patch(SECRET, KEY, {"stringData": {"token": VALUE}}, patch_type="merge"),
    "JSON patch": lambda it: it.patch(
        SECRET, KEY, [{"op": "add", "path": "/stringData/token", "value": VALUE}], patch_type="json"
    ),
    "delete": lambda it: it.delete(SECRET, KEY),
    "get": lambda it: it.get(SECRET, KEY),
    "list": lambda it: it.list(SECRET),
    "delete collection": lambda it: it.delete_collection(SECRET, namespace="default"),
    "a template of another kind": lambda it: it.create({**config_map(), "template": READ}),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_nothing_that_is_said_of_a_secret_is_shown(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    heard: list[ServerWarning] = []

    with pytest.raises(InvalidError) as raised:
        await VERBS[verb](client(refusal(), heard=heard))

    text = f"{raised.value!r} {raised.value.to_status()} {raised.value.causes} {heard} {caplog.text}"
    assert VALUE not in text
    assert "because of" not in text
    assert "run the request with kubectl" in str(raised.value)
    assert "the API server warns: a message, which is withheld: " in caplog.text
    assert raised.value.__cause__ is raised.value.__context__ is None


async def test_a_value_that_was_read_is_hidden_in_what_is_said_of_another_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[ServerWarning] = []
    it = client(ScriptedResponse(json=READ), refusal(), heard=heard)
    await it.get(SECRET, KEY)

    with pytest.raises(InvalidError) as raised:
        await it.create({**config_map(), "data": {"token": VALUE}})

    assert str(raised.value) == 'found "***"'
    assert [(cause.field, cause.message) for cause in raised.value.causes] == [("data.token", 'Invalid value: "***"')]
    assert [warning.text for warning in heard] == ["found ***"]
    assert VALUE not in caplog.text


@pytest.mark.parametrize("how", ["list", "items", "sent", "watch"])
async def test_values_are_known_however_they_went_through_the_client(how: str) -> None:
    page = ScriptedResponse(json={"metadata": {"resourceVersion": "1"}, "items": [READ]})
    event = ScriptedStream().send(json.dumps({"type": "ADDED", "object": READ}).encode())
    answers: dict[str, ScriptedResponse | ScriptedStream] = {
        "list": page,
        "items": page,
        "sent": ScriptedResponse(json={}),
        "watch": event,
    }
    it = client(answers[how], refusal())
    if how == "list":
        await it.list(SECRET)
    elif how == "items":
        assert [each async for each in it.items(SECRET)]
    elif how == "sent":
        await it.create(secret(stringData={"token": VALUE}))
    else:
        async with it.watch(SECRET) as events:
            assert (await anext(events)).type == "ADDED"

    with pytest.raises(InvalidError, match=r'^found "\*\*\*"$'):
        await it.with_permit(None).create(config_map())


async def test_within_a_block_nothing_of_a_servers_words_is_shown() -> None:
    it = client(refusal(), refusal())

    with pytest.raises(InvalidError) as raised, withhold_server_texts():
        await it.create(config_map())
    with pytest.raises(InvalidError, match=VALUE):
        await it.create(config_map())

    assert VALUE not in str(raised.value)


async def test_the_error_of_a_watch_of_secrets_is_withheld() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": f"found {VALUE}"}
    events = ScriptedStream().send(json.dumps({"type": "ERROR", "object": status}).encode())

    async with client(events).watch(SECRET) as watch:
        with pytest.raises(ExpiredError) as raised:
            await anext(watch)

    assert VALUE not in str(raised.value)


async def test_a_refused_watch_of_secrets_is_withheld() -> None:
    with pytest.raises(ApiError) as raised:
        async with client(refusal()).watch(SECRET):
            pass

    assert VALUE not in str(raised.value)
