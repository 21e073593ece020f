"""Key ranges, compared with kube-apiserver's own selector."""

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.client.http_transport import HttpTransport
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge._internal.runtime.election import compute_hash, compute_range, compute_shard
from konverge_cluster._internal.controlplane import RealCluster, commands

shard_counts = st.integers(1, 256)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)],
)
def test_the_hash_is_fnv_1a_of_64_bits(text: str, expected: int) -> None:
    """Check the vectors of the draft "The FNV Non-Cryptographic Hash Algorithm", appendix C."""
    assert compute_hash(text) == expected


@given(shard_counts)
def test_the_ranges_cover_every_hash_once(shards: int) -> None:
    ranges = [compute_range(shard, shards) for shard in range(shards)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 2**64
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))


def selector_of(held: set[int], shards: int) -> str:
    """Format a bound as the server does: 16 digits, but 17 for 2 ** 64."""
    ranges = (compute_range(shard, shards) for shard in sorted(held))
    return " || ".join(f"shardRange(object.metadata.uid, '0x{start:016x}', '0x{end:016x}')" for start, end in ranges)


@given(st.uuids().map(str), shard_counts)
def test_an_owner_is_in_the_shard_whose_range_its_hash_is_in(uid: str, shards: int) -> None:
    start, end = compute_range(compute_shard(uid, shards), shards)
    assert start <= compute_hash(uid) < end


@pytest.fixture(scope="module")
def gated_control_plane() -> Iterator[RealCluster]:
    """A control plane whose API server selects by shard (alpha in 1.36)."""
    first_programs = commands.build_first_programs

    def build_gated_programs(layout: commands.ControlPlaneLayout) -> dict[str, list[str]]:
        programs = first_programs(layout)
        programs["kube-apiserver"].append("--feature-gates=ShardedListAndWatch=true")
        return programs

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(commands, "build_first_programs", build_gated_programs)
            running = stack.enter_context(RealCluster())
        yield running  # one that is started for other tests meanwhile does not have the gate


class Server:
    """Send bare requests, since no client sends this selector yet."""

    def __init__(self, control_plane: RealCluster) -> None:
        self._transport = HttpTransport(load_kubeconfig(control_plane.kubeconfig, env={}))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    async def ask(self, method: str, query: dict[str, str] | None = None, body: object = None) -> tuple[int, Any]:
        answer = await self._transport.request(
            method,
            "/api/v1/namespaces/default/configmaps",
            query=query or {},
            headers={"accept": "application/json", "content-type": "application/json"},
            body=None if body is None else json.dumps(body).encode(),
            timeout_seconds=10.0,
        )
        return answer.status, json.loads(answer.body)

    async def create(self, count: int, name: str) -> set[str]:
        metadata = {"generateName": f"{name}-", "labels": {"set": name}}
        created = [(await self.ask("POST", body={"metadata": metadata}))[1] for _ in range(count)]
        return {each["metadata"]["uid"] for each in created}


@pytest.mark.anyio
@pytest.mark.real
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_api_servers_selector_is_our_function(gated_control_plane: RealCluster) -> None:
    async with Server(gated_control_plane) as server:
        uids = await server.create(60, "gated")
        for held in ({0}, {6}, {1, 2, 5}, {0, 6}, {1, 2, 3, 4, 5, 6}):
            selector = selector_of(held, 7)
            for version in ("", "0"):  # from the store, and from the watch cache
                query = {"shardSelector": selector, "labelSelector": "set=gated", "resourceVersion": version}
                _, found = await server.ask("GET", query)
                assert {item["metadata"]["uid"] for item in found["items"]} == {
                    u for u in uids if compute_shard(u, 7) in held
                }
                assert found["metadata"]["shardInfo"] == {"selector": selector}  # the server's confirmation


@pytest.mark.anyio
@pytest.mark.real
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_without_the_gate_ignores_the_selector_and_does_not_say_so(
    real_control_plane: RealCluster,
) -> None:
    async with Server(real_control_plane) as server:
        uids = await server.create(20, "open")
        _, found = await server.ask("GET", {"shardSelector": selector_of({0}, 2), "labelSelector": "set=open"})
        assert {item["metadata"]["uid"] for item in found["items"]} == uids
        assert "shardInfo" not in found["metadata"]
