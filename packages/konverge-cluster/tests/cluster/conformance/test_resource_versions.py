"""Lists, reads and watches from old, exact, future and unset resource versions, and the tokens of list pages."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from konverge.client import Transport
from konverge.kube import ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CONFIG_MAP, config_map

pytestmark = pytest.mark.anyio

NAMES = ["a", "b", "c", "d"]
FUTURE = 1_000_000_000
TOO_LARGE = (504, f"Timeout: Too large resource version: {FUTURE}, current: ")


@dataclass
class History:
    """Four ConfigMaps, created one after the other. A fifth is deleted."""

    namespace: str
    transport: Transport
    versions: list[str] = field(default_factory=list)

    async def ask(self, path: str = "", *, method: str = "GET", **query: str) -> tuple[int, Any]:
        """Send a request about the ConfigMaps; ``{third}`` is the resource version of the third."""
        filled = {name: value.replace("{third}", self.versions[2]) for name, value in query.items()}
        response = await self.transport.request(
            method,
            f"/api/v1/namespaces/{self.namespace}/configmaps{path}",
            query={**({} if path else {"labelSelector": "case=yes"}), **filled},
            headers={"accept": "application/json"},
            timeout_seconds=60,
        )
        return response.status, json.loads(response.body)

    async def list_names(self, **query: str) -> tuple[list[str], bool]:
        """Return the names of a list, and if there is a next page."""
        status, body = await self.ask(**query)
        assert status == 200, body
        return [item["metadata"]["name"] for item in body["items"]], bool(body["metadata"].get("continue"))

    async def watch(self, **query: str) -> list[tuple[str, str]]:
        """Return (type, name, or message of an error) of each event of a watch of one second."""
        filled = {name: value.replace("{third}", self.versions[2]) for name, value in query.items()}
        streaming = self.transport.stream(
            "GET",
            f"/api/v1/namespaces/{self.namespace}/configmaps",
            query={"labelSelector": "case=yes", "watch": "1", "timeoutSeconds": "1", **filled},
            headers={"accept": "application/json"},
            connect_timeout_seconds=60,
        )
        events: list[tuple[str, str]] = []
        async with streaming as response:
            is_refused = response.status >= 400
            text = await response.body() if is_refused else b"".join([chunk async for chunk in response.chunks()])
        for line in text.splitlines():
            event = json.loads(line)
            if event.get("kind") == "Status":
                events.append(("REFUSED", event["message"]))
                continue
            obj = event["object"]
            marks = obj["metadata"].get("annotations", {}) if "metadata" in obj else {}
            name = "end of state" if marks.get("k8s.io/initial-events-end") else obj["metadata"].get("name", "")
            events.append((event["type"], name or obj.get("message", "")))
        return events


@pytest.fixture
async def history(cluster: Cluster) -> History:
    history = History(cluster.namespace, cluster.new_transport())
    for name in [*NAMES, "e"]:
        created = await cluster.client.create(config_map(cluster.namespace, name, labels={"case": "yes"}))
        history.versions.append(created["metadata"]["resourceVersion"])
    await cluster.client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "e"))
    return history


@pytest.mark.parametrize(
    ("query", "names", "is_continued"),
    [
        ({}, NAMES, False),
        ({"resourceVersion": "0"}, NAMES, False),
        ({"resourceVersion": "{third}"}, NAMES, False),
        ({"resourceVersion": "{third}", "resourceVersionMatch": "Exact"}, ["a", "b", "c"], False),
        ({"resourceVersion": "{third}", "resourceVersionMatch": "NotOlderThan"}, NAMES, False),
        ({"resourceVersion": "{third}", "resourceVersionMatch": "NotOlderThan", "limit": "3"}, ["a", "b", "c"], True),
        # Version zero means the cache, which has no pages.
        ({"resourceVersion": "0", "limit": "2"}, NAMES, False),
    ],
)
async def test_a_list_shows_the_state_of_its_version(
    history: History, query: dict[str, str], names: list[str], is_continued: bool
) -> None:
    assert await history.list_names(**query) == (names, is_continued)


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("", {"resourceVersion": str(FUTURE)}, TOO_LARGE),
        ("", {"resourceVersion": str(FUTURE), "limit": "2"}, TOO_LARGE),
        ("", {"resourceVersion": str(FUTURE), "resourceVersionMatch": "Exact"}, TOO_LARGE),
        ("/a", {"resourceVersion": str(FUTURE)}, TOO_LARGE),
        ("/a", {"resourceVersion": "x"}, (500, 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x"')),
        (
            "",
            {"continue": "x", "resourceVersionMatch": "Exact"},
            (
                422,
                'ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is '
                "forbidden unless resourceVersion is provided, resourceVersionMatch: Forbidden: resourceVersionMatch "
                "is forbidden when continue is provided]",
            ),
        ),
    ],
)
async def test_a_version_that_cannot_be_read_is_refused(
    history: History, path: str, query: dict[str, str], expected: tuple[int, str]
) -> None:
    status, body = await history.ask(path, **query)

    assert (status, body["message"][: len(expected[1])]) == expected
    assert body.get("reason", "absent") != ""


async def test_a_collection_is_not_deleted_at_a_future_version(history: History) -> None:
    status, body = await history.ask(method="DELETE", resourceVersion=str(FUTURE))

    assert (status, body["reason"]) == (504, "Timeout")
    assert await history.list_names() == (NAMES, False)


async def test_an_old_version_of_one_object_is_the_current_one(history: History) -> None:
    status, body = await history.ask("/a", resourceVersion="1")

    assert (status, body["metadata"]["resourceVersion"]) == (200, history.versions[0])


# Tokens of list pages


def read_token(token: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return decoded


def write_token(**parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


async def read_first_token(history: History) -> dict[str, Any]:
    _, body = await history.ask(limit="2")
    return read_token(body["metadata"]["continue"])


async def test_a_token_has_the_form_of_kubernetes(history: History) -> None:
    token = await read_first_token(history)

    assert token.pop("rv") >= int(history.versions[-1])
    assert token == {"v": "meta.k8s.io/v1", "start": "/b\0"}


PREFIX = "invalid continue token: continue key is not valid: "


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"rv": 0}, (400, f"{PREFIX}incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
        ({"v": "meta.k8s.io/v9"}, (400, f"{PREFIX}server does not recognize this encoded version meta.k8s.io/v9")),
        ({"start": ""}, (400, f"{PREFIX}encoded start key empty (version meta.k8s.io/v1)")),
        ({"start": "../x\0"}, (400, f"{PREFIX}../x\0")),
        ({"rv": FUTURE}, TOO_LARGE),
    ],
)
async def test_a_changed_token_is_refused(history: History, change: dict[str, Any], expected: tuple[int, str]) -> None:
    token = write_token(**{**await read_first_token(history), **change})

    status, body = await history.ask(**{"limit": "2", "continue": token})

    assert (status, body["message"][: len(expected[1])]) == expected


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("!!!", "illegal base64 data at input byte 0"),
        ("abc", "invalid character 'i' looking for beginning of value"),
    ],
)
async def test_a_text_that_is_no_token_is_refused(history: History, token: str, reason: str) -> None:
    status, body = await history.ask(**{"continue": token})

    assert (status, body["message"]) == (400, f"{PREFIX}{reason}")


async def test_a_token_of_a_negative_version_continues_now(history: History, cluster: Cluster) -> None:
    token = write_token(**{**await read_first_token(history), "rv": -1})
    await cluster.client.create(config_map(cluster.namespace, "bb", labels={"case": "yes"}))

    names, _ = await history.list_names(**{"limit": "50", "continue": token})

    assert names == ["bb", "c", "d"]


async def test_a_token_and_a_version_exclude_each_other(history: History) -> None:
    token = write_token(**await read_first_token(history))

    status, body = await history.ask(**{"limit": "2", "continue": token, "resourceVersion": "{third}"})

    assert (status, body["message"]) == (400, "specifying resource version is not allowed when using continue")
    assert (await history.list_names(**{"continue": token, "resourceVersion": "0"}))[0] == ["c", "d"]


async def test_namespaces_are_listed_in_the_order_of_their_keys(history: History, cluster: Cluster) -> None:
    # A dash comes before the slash that follows the namespace in the key.
    other = f"{cluster.namespace}-more"
    await cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await cluster.client.create(config_map(other, "z", labels={"case": cluster.namespace}))
    await cluster.client.create(config_map(cluster.namespace, "z", labels={"case": cluster.namespace}))

    found = await cluster.client.list(CONFIG_MAP, label_selector=f"case={cluster.namespace}")

    assert [item["metadata"]["namespace"] for item in found.items] == [other, cluster.namespace]


# Watches

STATE = [("ADDED", name) for name in NAMES]
END = ("BOOKMARK", "end of state")
LATER = [("ADDED", "d"), ("ADDED", "e"), ("DELETED", "e")]
BOOKMARKS = {"allowWatchBookmarks": "true"}
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
NO_INITIAL = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
LIST_OPTIONS = 'ListOptions.meta.k8s.io "" is invalid: '


def without_plain_bookmarks(events: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [event for event in events if event != ("BOOKMARK", "")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, STATE),
        ({"resourceVersion": "0"}, STATE),
        ({"resourceVersion": "{third}"}, LATER),
        (BOOKMARKS, [*STATE, END]),
        (INITIAL | BOOKMARKS, [*STATE, END]),
        (INITIAL, STATE),
        (INITIAL | BOOKMARKS | {"resourceVersion": "{third}"}, [*STATE, END]),
        (NO_INITIAL, []),
        (NO_INITIAL | {"resourceVersion": "0"}, []),
        (NO_INITIAL | {"resourceVersion": "{third}"}, LATER),
        (
            {"continue": "x"},
            [
                (
                    "REFUSED",
                    f"{LIST_OPTIONS}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue "
                    "is provided",
                )
            ],
        ),
        (
            {"resourceVersion": "{third}", "resourceVersionMatch": "Exact"},
            [
                (
                    "REFUSED",
                    f"{LIST_OPTIONS}[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                    'unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: "Exact": supported '
                    'values: "NotOlderThan"]',
                )
            ],
        ),
    ],
)
async def test_a_watch_begins_at_its_version(
    history: History, query: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert without_plain_bookmarks(await history.watch(**query)) == expected


async def test_a_watch_of_a_future_state_ends_with_an_error(history: History) -> None:
    ((kind, message),) = await history.watch(**INITIAL, **BOOKMARKS, resourceVersion=str(FUTURE), timeoutSeconds="20")

    assert kind == "ERROR"
    assert message.startswith(TOO_LARGE[1])
