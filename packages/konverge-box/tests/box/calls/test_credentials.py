"""The credentials of calls, and their redaction."""

from __future__ import annotations

import base64
import logging
import traceback
from typing import Any

import pytest
from aiohttp import web

from konverge.errors import ConfigurationError, ConnectionFailedError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_box._internal.calls import CallError
from konverge_box.expressions import has_sensitive, reveal_sensitive, to_sensitive
from tests.box.calls.call_fixtures import Secrets, build_caller, compile_calls, respond_with, run_calls, serve_site
from tests.resolution.network.http_servers import FakeDns, RequestHandlerFunction

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

SECRETS = {
    "shop/token": {"token": "hunter2", "line": "hunter2\n", "two": "hunter2\nX-Evil: 1"},
    "platform/shared": {"token": "hunter3"},
}


async def echo(request: web.Request) -> web.StreamResponse:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return web.json_response({"headers": headers, "query": dict(request.query), "body": await request.text()})


def noting(seen: dict[str, str]) -> RequestHandlerFunction:
    async def serve(request: web.Request) -> web.StreamResponse:
        seen.update({name.lower(): value for name, value in request.headers.items()})
        return web.json_response({"size": 3})

    return serve


async def send_and_get_headers(auth: str, **more: Any) -> dict[str, str]:
    seen: dict[str, str] = {}
    async with serve_site(a=noting(seen)) as url:
        text = f"[{{name: a, url: '{url}/a', headers: {{X-Own: x}}, auth: {auth}}}]"
        await run_calls(text, **{"secrets": Secrets(SECRETS), **more})
    return seen


async def test_a_secret_of_the_own_namespace_is_a_bearer_token() -> None:
    assert (await send_and_get_headers("{secretRef: {name: token, key: token}}"))["authorization"] == "Bearer hunter2"


async def test_in_a_header_of_its_own_it_is_sent_as_it_is() -> None:
    seen = await send_and_get_headers("{secretRef: {name: token, key: token}, header: X-Token}")
    assert seen["x-token"] == "hunter2"
    assert "authorization" not in seen


async def test_the_credential_replaces_a_header_of_the_same_name() -> None:
    assert (await send_and_get_headers("{secretRef: {name: token, key: token}, header: x-own}"))["x-own"] == "hunter2"


async def test_an_environment_variable_is_a_credential_too() -> None:
    seen = await send_and_get_headers("{env: API_TOKEN}", by=build_caller(environment={"API_TOKEN": "hunter4"}))
    assert seen["authorization"] == "Bearer hunter4"


async def test_the_line_break_that_files_end_with_is_no_part_of_a_token() -> None:
    assert (await send_and_get_headers("{secretRef: {name: token, key: line}}"))["authorization"] == "Bearer hunter2"


async def test_a_secret_of_another_namespace_that_is_written_out_may_be_used() -> None:
    seen = await send_and_get_headers("{secretRef: {name: shared, key: token, namespace: platform}}")
    assert seen["authorization"] == "Bearer hunter3"


async def test_an_expression_may_name_a_secret_of_the_own_namespace() -> None:
    auth = '{secretRef: {name: "{{ spec.secret }}", key: token, namespace: "{{ metadata.namespace }}"}}'
    assert (await send_and_get_headers(auth, spec={"secret": "token"}))["authorization"] == "Bearer hunter2"


async def test_an_expression_cannot_reach_a_secret_of_another_namespace() -> None:
    secrets = Secrets(SECRETS)
    auth = '{secretRef: {name: shared, key: token, namespace: "{{ spec.where }}"}}'
    with pytest.raises(CallError, match=r"expected the custom resource's namespace shop, found platform"):
        await send_and_get_headers(auth, spec={"where": "platform"}, secrets=secrets)
    assert secrets.read == []


async def test_the_own_namespace_is_what_the_cluster_says_and_not_what_a_mutation_made_of_it() -> None:
    auth = '{secretRef: {name: shared, key: token, namespace: "{{ metadata.namespace }}"}}'
    with pytest.raises(CallError, match="custom resource's namespace shop"):
        await send_and_get_headers(auth, metadata={"name": "web", "namespace": "platform"})


async def test_a_custom_resource_of_the_cluster_has_no_own_namespace() -> None:
    with pytest.raises(CallError, match="expected a namespace, found none"):
        await send_and_get_headers("{secretRef: {name: token, key: token}}", namespace="")


GIVEN_AWAY = {
    "the name": "url: 'http://a.example', auth: {secretRef: {namespace: p, name: '{{ spec.a }}', key: k}}",
    "the key": "url: 'http://a.example', auth: {secretRef: {namespace: p, name: s, key: '{{ spec.a }}'}}",
    "the host": "url: 'http://{{ spec.a }}/', auth: {secretRef: {namespace: p, name: s, key: k}}",
    "the end of the host": "url: 'http://a.example{{ spec.a }}', auth: {secretRef: {namespace: p, name: s, key: k}}",
    "the whole url": "url: '{{ spec.a }}', auth: {env: TOKEN}",
    "the port": "url: 'http://a.example:{{ spec.a }}/', auth: {env: TOKEN}",
}


@pytest.mark.parametrize("text", GIVEN_AWAY.values(), ids=GIVEN_AWAY)
def test_a_credential_of_others_is_not_at_the_custom_resources_disposal(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a literal .*found an expression"):
        compile_calls(f"[{{name: a, {text}}}]")


def test_only_the_path_of_what_gets_a_credential_of_others_may_be_an_expression() -> None:
    assert compile_calls("[{name: a, url: 'http://a.example/{{ spec.a }}', auth: {env: TOKEN}}]").batches == (("a",),)


MISSING = {
    "a Secret": ("{secretRef: {name: none, key: token}}", "waiting for Secret shop/none, which does not exist"),
    "a key": ("{secretRef: {name: token, key: none}}", "expected the key none in Secret shop/token, found none"),
    "a variable": ("{env: NONE}", "expected a value in the environment variable NONE, found none"),
    "one line": ("{secretRef: {name: token, key: two}}", "expected one line of text in Secret shop/token, two"),
}


@pytest.mark.parametrize(("auth", "problem"), MISSING.values(), ids=MISSING)
async def test_a_credential_that_is_not_there_is_an_error_and_nothing_is_sent(auth: str, problem: str) -> None:
    with pytest.raises(CallError) as failure:
        await send_and_get_headers(auth, by=build_caller(environment={}))
    assert problem in str(failure.value)
    assert "hunter" not in str(failure.value)


async def test_an_answer_to_a_call_with_a_credential_can_be_shown() -> None:
    async with serve_site(a=respond_with({"size": 3})) as url:
        text = f"[{{name: a, url: '{url}/a', auth: {{secretRef: {{name: token, key: token}}}}}}]"
        found = await run_calls(text, secrets=Secrets(SECRETS))
    assert not has_sensitive(found)


async def test_an_answer_that_repeats_the_credential_is_hidden() -> None:
    async with serve_site(a=echo) as url:
        text = f"[{{name: a, url: '{url}/a', auth: {{secretRef: {{name: token, key: token}}}}}}]"
        found = await run_calls(text, secrets=Secrets(SECRETS))
    assert "hunter2" not in repr(found)
    assert reveal_sensitive(found["a"]["headers"])["authorization"] == "Bearer hunter2"


@pytest.mark.parametrize(
    "part",
    [
        'url: "%s/a?{{ cross.db.data.password }}"',
        'url: "%s/a", method: POST, body: {p: "{{ cross.db.data.password | toUpper }}"}',
        'url: "%s/a", headers: {X-P: "{{ cross.db.data.password }}"}',
    ],
)
async def test_an_answer_to_what_an_expression_made_of_a_secret_is_hidden(part: str) -> None:
    async with serve_site(a=respond_with({"size": 3})) as url:
        found = await run_calls(
            f"[{{name: a, {part % url}}}]", cross={"db": {"data": to_sensitive({"password": "hunter2"})}}
        )
    assert has_sensitive(found["a"]["size"])
    assert found["a"]["status"] == 200


@pytest.mark.parametrize("target", ["http://hunter2.example/", "http://hunter2.private/", "http://127.0.0.1:1/hunter2"])
async def test_a_server_that_redirects_to_the_credential_does_not_have_it_shown(target: str) -> None:
    async def away(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": target})

    async with serve_site(a=away) as url:
        text = f"[{{name: a, url: '{url}/a', auth: {{secretRef: {{name: token, key: token}}}}}}]"
        names = FakeDns({"hunter2.private": [["10.0.0.1"]]})
        with pytest.raises(CallError) as failure:
            await run_calls(text, secrets=Secrets(SECRETS), by=build_caller(lookup=names))
    assert "hunter2" not in "".join(traceback.format_exception(failure.value)) + repr(failure.value.results)


async def test_a_secret_that_cannot_be_read_is_an_error_of_its_call() -> None:
    class Forbidding(Secrets):
        async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
            raise ConnectionFailedError("the server is away")

    with pytest.raises(CallError, match="Secret shop/token cannot be read: the server is away"):
        await send_and_get_headers("{secretRef: {name: token, key: token}}", secrets=Forbidding())


async def test_no_failure_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    cross = {
        "db": {"data": to_sensitive({"password": "hunter2", "host": "hunter2.example", "url": "http://hunter2@a"})}
    }

    async def refuses(request: web.Request) -> web.StreamResponse:
        return web.json_response({"why": f"{request.query_string} {request.headers['authorization']}"}, status=403)

    async with serve_site(a=refuses) as url:
        texts = [
            f"{{name: a, url: '{url}/a?"
            + "{{ cross.db.data.password }}', auth: {secretRef: {name: token, key: token}}}",
            "{name: a, url: 'http://{{ cross.db.data.host }}/'}",
            "{name: a, url: '{{ cross.db.data.url }}'}",
            "{name: a, url: 'http://{{ cross.db.data.password }}:1/'}",
            "{name: a, url: 'http://127.0.0.1:1/{{ cross.db.data.password }}'}",
            "{name: a, url: 'http://169.254.169.254/{{ cross.db.data.password }}'}",
            "{name: a, url: 'redis://127.0.0.1:1', protocol: redis, query: 'GET {{ cross.db.data.password }}'}",
            "{name: a, url: 'http://a b/{{ cross.db.data.password }}'}",
            "{name: a, url: 'http://127.0.0.1:1', headers: {'X {{ cross.db.data.password }}': a}}",
            "{name: a, url: 'http://127.0.0.1:1', headers: {X-A: 'a\\n{{ cross.db.data.password }}'}}",
        ]
        for text in texts:
            by = build_caller(lookup=FakeDns({"hunter2.example": [["10.0.0.1"]]}))
            with caplog.at_level(logging.DEBUG), pytest.raises(CallError) as failure:
                await run_calls(f"[{text}]", cross=cross, secrets=Secrets(SECRETS), by=by)
            output = "".join(traceback.format_exception(failure.value)) + repr(failure.value.results) + caplog.text
            assert "hunter2" not in output, text
            assert base64.b64encode(b"hunter2").decode() not in output
