"""Hubs of a test: both protocols over the same definitions; each can be down, deaf or busy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.resolution.http_resolution import TASK
from tests.resolution.network.http_servers import serve_site


def build_definition(version: str) -> bytes:
    """The definition that hubs have for a version."""
    return TASK + f"# {version}\n".encode()


@dataclass
class FakeHub:
    """A hub with versions of one definition.

    Args:
        versions: Those it has, as it writes them.
        prereleases: Those that it calls so.
        status: What it answers with instead of 200.
        answer: What it answers with instead of what it has.
    """

    versions: Sequence[str] = ("0.6.0", "0.7.0", "1.1.0", "0.10.0", "2.0.0")
    prereleases: Sequence[str] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    answer: Callable[[str], bytes] | None = None
    asked: list[str] = field(default_factory=list)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request.raw_path)
        if self.status != 200:
            return web.json_response({}, status=self.status, headers=self.headers)
        if self.answer is not None:
            return web.Response(body=self.answer(request.raw_path))
        parts = request.raw_path.removeprefix("/hub").strip("/").split("/")
        if parts[:3] == ["api", "v1", "packages"]:
            return self._artifact(parts[3:])
        return self._tekton(parts[2:])

    def _artifact(self, parts: Sequence[str]) -> web.Response:
        if len(parts) == 3:
            listed = [{"version": each, "prerelease": each in self.prereleases, "ts": 1} for each in self.versions]
            return web.json_response({"name": parts[2], "available_versions": listed})
        return self._one(parts[3], "manifestRaw")

    def _tekton(self, parts: Sequence[str]) -> web.Response:
        if len(parts) == 3:
            return web.json_response({"data": {"versions": [{"id": 1, "version": each} for each in self.versions]}})
        return self._one(parts[3], "yaml")

    def _one(self, version: str, name: str) -> web.Response:
        if version not in self.versions:
            return web.json_response({"message": "not found"}, status=404)
        return web.json_response({"data": {name: build_definition(version).decode(), "other": {}}})


@asynccontextmanager
async def serve_hubs(*made: FakeHub) -> AsyncIterator[list[str]]:
    """Their addresses."""
    if not made:
        yield []
        return
    async with serve_site(made[0]) as first, serve_hubs(*made[1:]) as others:
        yield [first, *others]
