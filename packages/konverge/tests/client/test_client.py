"""The verbs: their requests, their results, and their retries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from konverge.client import ApplyResponse, Client
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    KindNotServedError,
    KonvergeError,
    NotConnectedError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UntrustedServerError,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.client.scripted_transport import Script, ScriptedResponse, ScriptedTransport, build_failure

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
KEY = ObjectKey("default", "web")
COLLECTION = "/api/v1/namespaces/default/configmaps"
PATH = f"{COLLECTION}/web"

WEB: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}}


def client_of(*script: Script, timeout_seconds: float = 30.0) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    client = Client(
        transport,
        user_agent="tests/1",
        timeout_seconds=timeout_seconds,
        clock=SimulatedClock(),
        entropy=SeededEntropy(),
    )
    return client, transport


# What is sent.


async def test_get_reads_one_object() -> None:
    client, transport = client_of(ScriptedResponse(json=WEB))

    assert await client.get(CONFIG_MAP, KEY) == WEB
    (asked,) = transport.asked
    assert (asked.method, asked.path, asked.body) == ("GET", PATH, None)
    assert asked.headers["user-agent"] == "tests/1"
    assert asked.headers["accept"] == "application/json"


async def test_create_posts_to_the_collection() -> None:
    client, transport = client_of(ScriptedResponse(201, WEB))
    await client.create(WEB, field_manager="me")

    (asked,) = transport.asked
    assert (asked.method, asked.path, asked.body) == ("POST", COLLECTION, WEB)
    assert asked.query == {"fieldManager": "me"}
    assert asked.headers["content-type"] == "application/json"


async def test_update_puts_the_object_without_its_managed_fields() -> None:
    client, transport = client_of(ScriptedResponse(json=WEB))
    managed = {**WEB, "metadata": {**WEB["metadata"], "managedFields": [{"manager": "m"}]}}
    await client.update(managed, subresource="status")

    (asked,) = transport.asked
    assert (asked.method, asked.path, asked.body) == ("PUT", f"{PATH}/status", WEB)
    assert "managedFields" in managed["metadata"]


@pytest.mark.parametrize(
    ("patch_type", "content_type"),
    [
        ("json", "application/json-patch+json"),
        ("merge", "application/merge-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("apply", "application/apply-patch+yaml"),
    ],
)
async def test_each_patch_type_has_its_content_type(patch_type: str, content_type: str) -> None:
    client, transport = client_of(ScriptedResponse(json=WEB))
    await client.patch(CONFIG_MAP, KEY, {"data": None}, patch_type=patch_type)  # type: ignore[arg-type]  # any of the types

    (asked,) = transport.asked
    assert (asked.method, asked.path, asked.body) == ("PATCH", PATH, {"data": None})
    assert asked.headers["content-type"] == content_type


@pytest.mark.parametrize(("status", "created"), [(201, True), (200, False)])
async def test_apply_tells_whether_it_created(status: int, created: bool) -> None:
    client, transport = client_of(ScriptedResponse(status, WEB))

    assert await client.apply(WEB, field_manager="me") == ApplyResponse(WEB, created)
    (asked,) = transport.asked
    assert (asked.method, asked.path) == ("PATCH", PATH)
    assert asked.query == {"fieldManager": "me", "force": "true"}
    assert asked.headers["content-type"] == "application/apply-patch+yaml"


async def test_apply_can_be_tried_without_force_and_without_effect() -> None:
    client, transport = client_of(ScriptedResponse(json=WEB))
    await client.apply(WEB, field_manager="me", force=False, dry_run=True, subresource="status")

    assert transport.asked[0].path == f"{PATH}/status"
    assert transport.asked[0].query == {"fieldManager": "me", "force": "false", "dryRun": "All"}


async def test_delete_carries_the_uid_and_how_to_treat_what_it_owns() -> None:
    client, transport = client_of(ScriptedResponse(json={"kind": "Status", "status": "Success"}))
    gone = await client.delete(CONFIG_MAP, KEY, uid="u1", propagation="Foreground")

    assert gone is None
    assert transport.asked[0].method == "DELETE"
    assert transport.asked[0].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u1"},
    }


@pytest.mark.parametrize(
    ("metadata", "held"),
    [
        ({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}, True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}, True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}, False),
        ({}, False),
    ],
    ids=["finalizer", "grace period", "no grace period", "deleted at once"],
)
async def test_delete_gives_the_object_while_something_holds_it(metadata: Object, held: bool) -> None:
    obj = {**WEB, "metadata": {**WEB["metadata"], **metadata}}
    client, _ = client_of(ScriptedResponse(json=obj))

    assert (await client.delete(CONFIG_MAP, KEY) == obj) is held


async def test_list_follows_the_pages_and_says_what_its_items_are() -> None:
    client, transport = client_of(
        ScriptedResponse(
            json={"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]}
        ),
        ScriptedResponse(json={"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "b"}}]}),
    )
    found = await client.list(CONFIG_MAP, namespace="default", label_selector="a=b", limit=1)

    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
    assert found.items[0]["kind"] == "ConfigMap"
    assert found.resource_version == "9"
    assert [asked.query for asked in transport.asked] == [
        {"labelSelector": "a=b", "limit": "1"},
        {"labelSelector": "a=b", "limit": "1", "continue": "more"},
    ]


@pytest.mark.parametrize("tokens", ["AA", "ABA", "ABCDB"])
async def test_a_list_that_never_ends_is_an_error(tokens: str) -> None:
    pages = [{"metadata": {"resourceVersion": "9", "continue": token}, "items": []} for token in tokens]
    client, _ = client_of(*(ScriptedResponse(json=page) for page in pages))

    with pytest.raises(ConnectionFailedError, match="expected a new continue token, found a repeated one"):
        await client.list(CONFIG_MAP)


async def test_a_list_whose_pages_expire_is_read_in_one_piece() -> None:
    page = {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]}
    whole = {"metadata": {"resourceVersion": "12"}, "items": [{"metadata": {"name": "b"}}]}
    client, transport = client_of(
        ScriptedResponse(json=page), build_failure(410, "Expired"), ScriptedResponse(json=whole)
    )
    found = await client.list(CONFIG_MAP)

    assert [item["metadata"]["name"] for item in found.items] == ["b"]
    assert transport.asked[-1].query == {}


async def test_an_expired_list_without_pages_is_an_error() -> None:
    client, _ = client_of(build_failure(410, "Expired"))

    with pytest.raises(ExpiredError):
        await client.list(CONFIG_MAP)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"metadata":{"resourceVersion":"9"}}',
        b'{"metadata":{},"items":["\xff"]}',
        b'{"metadata":{},"items":[' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
    ],
    ids=["empty", "no items", "not UTF-8", "too deep"],
)
async def test_what_is_no_list_is_never_taken_for_an_empty_one(body: bytes) -> None:
    client, _ = client_of(*[ScriptedResponse(json=body)] * 4)

    with pytest.raises(ConnectionFailedError, match="expected the response of a Kubernetes API server"):
        await client.list(CONFIG_MAP)


async def test_a_null_list_is_empty() -> None:
    client, _ = client_of(ScriptedResponse(json={"metadata": {"resourceVersion": "9"}, "items": None}))

    assert (await client.list(CONFIG_MAP)).items == []


# What failures become.


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (build_failure(400, "BadRequest"), BadRequestError),
        (build_failure(401, "Unauthorized"), UnauthorizedError),
        (build_failure(403, "Forbidden"), ForbiddenError),
        (build_failure(404, "NotFound", name="web"), NotFoundError),
        (build_failure(409, "Conflict"), ConflictError),
        (build_failure(409, "AlreadyExists"), AlreadyExistsError),
        (build_failure(410, "Expired"), ExpiredError),
        (build_failure(422, "Invalid"), InvalidError),
        (build_failure(429, "TooManyRequests"), TooManyRequestsError),
        (build_failure(500, "InternalError"), ServerError),
        (ScriptedResponse(502, b"<html>bad gateway</html>"), ServerError),
        (ScriptedResponse(418, b""), ApiError),
    ],
    ids=lambda found: str(found.status) if isinstance(found, ScriptedResponse) else found.__name__,
)
async def test_each_refusal_has_its_class(answer: ScriptedResponse, error: type[KonvergeError]) -> None:
    client, _ = client_of(answer)

    with pytest.raises(error) as raised:
        await client.update(WEB)
    assert type(raised.value) is error


async def test_the_time_to_come_back_is_told() -> None:
    client, _ = client_of(build_failure(429, "TooManyRequests", retry_after=60))

    with pytest.raises(TooManyRequestsError) as raised:
        await client.get(CONFIG_MAP, KEY)
    assert raised.value.retry_after_seconds == 60


async def test_nobody_is_sent_away_for_ever() -> None:
    client, _ = client_of(build_failure(429, "TooManyRequests", retry_after=10**20))

    with pytest.raises(TooManyRequestsError) as raised:
        await client.get(CONFIG_MAP, KEY)
    assert raised.value.retry_after_seconds == 600


@pytest.mark.parametrize("headers", [{"content-type": "text/plain"}, {}])
async def test_a_plain_text_refusal_keeps_its_words(headers: dict[str, str]) -> None:
    refusal = ScriptedResponse(400, b"Client sent an HTTP request to an HTTPS server.\n", headers)
    client, _ = client_of(refusal)

    with pytest.raises(BadRequestError, match="sent an HTTP request to an HTTPS server"):
        await client.get(CONFIG_MAP, KEY)


@pytest.mark.parametrize(
    "verb",
    [
        lambda client: client.get(CONFIG_MAP, KEY),
        lambda client: client.list(CONFIG_MAP),
        lambda client: client.create(WEB),
    ],
    ids=["get", "list", "create"],
)
async def test_a_path_that_is_gone_means_that_the_kind_is_not_served(
    verb: Callable[[Client], Awaitable[object]],
) -> None:
    client, _ = client_of(ScriptedResponse(404, b"404 page not found\n"))

    with pytest.raises(KindNotServedError, match="v1/ConfigMap"):
        await verb(client)


async def test_an_answer_that_is_not_json_is_told_as_such() -> None:
    client, _ = client_of(ScriptedResponse(200, b"<html>Log in</html>"))

    with pytest.raises(ConnectionFailedError, match="expected the response of a Kubernetes API server"):
        await client.get(CONFIG_MAP, KEY)


# When it is sent again.

BROKEN = ConnectionFailedError("the connection broke")
REFUSED = NotConnectedError("connection refused")

VERBS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "get": lambda client: client.get(CONFIG_MAP, KEY),
    "create": lambda client: client.create(WEB),
    "update": lambda client: client.update(WEB),
    "apply": lambda client: client.apply(WEB, field_manager="me"),
    "delete": lambda client: client.delete(CONFIG_MAP, KEY),
}
WRITES = sorted(set(VERBS) - {"get"})


@pytest.mark.parametrize("verb", sorted(VERBS))
@pytest.mark.parametrize(
    "failed",
    [REFUSED, build_failure(429, retry_after=1), build_failure(503, retry_after=1)],
    ids=["never connected", "429 with a time", "503 with a time"],
)
async def test_what_the_server_has_not_acted_on_is_sent_again(verb: str, failed: Script) -> None:
    client, transport = client_of(failed, failed, ScriptedResponse(json=WEB))
    await VERBS[verb](client)

    assert len(transport.asked) == 3


@pytest.mark.parametrize(
    "failed",
    [
        BROKEN,
        build_failure(429),
        build_failure(502),
        build_failure(503),
        build_failure(504),
        build_failure(500, retryAfterSeconds=1),
    ],
    ids=["broken", "429", "502", "503", "504", "500 with a time"],
)
async def test_a_read_is_sent_again_after_a_passing_failure(failed: Script) -> None:
    client, transport = client_of(failed, ScriptedResponse(json=WEB))
    await client.get(CONFIG_MAP, KEY)

    assert len(transport.asked) == 2


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize(
    "failed",
    [
        BROKEN,
        *map(build_failure, (429, 500, 502, 503, 504)),
        *(build_failure(code, retry_after=1) for code in (500, 502, 504)),
    ],
    ids=["broken", "429", "500", "502", "503", "504", "500 with a time", "502 with a time", "504 with a time"],
)
async def test_a_write_that_may_have_happened_is_not_sent_again(verb: str, failed: Script) -> None:
    client, transport = client_of(failed)

    with pytest.raises(KonvergeError):
        await VERBS[verb](client)
    assert len(transport.asked) == 1


@pytest.mark.parametrize("failed", [build_failure(500), build_failure(403), UntrustedServerError("expired")], ids=str)
async def test_a_read_that_repeating_cannot_help_is_not_sent_again(failed: Script) -> None:
    client, transport = client_of(failed)

    with pytest.raises(KonvergeError):
        await client.get(CONFIG_MAP, KEY)
    assert len(transport.asked) == 1


async def test_it_gives_up_after_four_attempts_with_the_last_failure() -> None:
    client, transport = client_of(*[REFUSED] * 9)

    with pytest.raises(NotConnectedError):
        await client.get(CONFIG_MAP, KEY)
    assert len(transport.asked) == 4


async def test_the_server_decides_how_long_to_wait() -> None:
    client, transport = client_of(build_failure(429, retry_after=7), ScriptedResponse(json=WEB))
    await client.get(CONFIG_MAP, KEY)

    first, second = (asked.timeout_seconds for asked in transport.asked)
    assert 7 <= first - second <= 7 * 1.5


async def test_clients_that_were_sent_away_together_do_not_come_back_together() -> None:
    pauses = set()
    for seed in range(10):
        transport = ScriptedTransport(build_failure(429, retry_after=7), ScriptedResponse(json=WEB))
        client = Client(transport, clock=SimulatedClock(), entropy=SeededEntropy(seed))
        await client.get(CONFIG_MAP, KEY)
        pauses.add(transport.asked[0].timeout_seconds - transport.asked[1].timeout_seconds)

    assert len(pauses) == 10
    assert max(pauses) - min(pauses) > 1


async def test_retries_end_with_the_deadline() -> None:
    client, transport = client_of(build_failure(429, retry_after=7), timeout_seconds=5)

    with pytest.raises(TooManyRequestsError):
        await client.get(CONFIG_MAP, KEY)
    assert len(transport.asked) == 1


async def test_leaving_the_block_closes_the_transport() -> None:
    client, transport = client_of()
    async with client:
        pass

    assert transport.closed
