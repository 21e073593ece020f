"""What of a registry's answers is kept: by mode, by tag or digest, for how long, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from konverge_resolution import Reference, ResolutionError
from konverge_resolution._internal.content_cache import CacheLimits, CacheMode, ContentCache
from konverge_resolution._internal.engine import EngineOptions
from tests.resolution.bundles.sample_images import BUNDLE, WEB, BundleHarness, build_image, digest_of, object_layer
from tests.resolution.servers.fake_registry import FakeRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def name(fake: FakeRegistry) -> str:
    fake.push("boxes", "1", *BUNDLE)
    return fake.name()


def reference(name: str, tail: str = f"@{digest_of(BUNDLE[0])}", **params: Any) -> Reference:
    return Reference("bundles", {"bundle": f"{name}/boxes{tail}", "name": "build", **params})


async def count_requests(
    fake: FakeRegistry, wanted: Reference, settings: Mapping[str, str] | None = None, **more: Any
) -> tuple[int, int]:
    """How often two resolutions ask for the head of a manifest, and for one."""
    engine = BundleHarness(fake.name(), settings or {}).engine(**more)
    for _ in range(2):
        await engine.resolve(wanted, WEB)
    return fake.count("HEAD", "manifests"), fake.count("GET", "manifests")


@pytest.mark.parametrize(
    ("mode", "by_digest", "by_tag"),
    [
        ("always", (0, 1), (1, 1)),
        ("never", (0, 2), (2, 2)),
        ("auto", (0, 1), (2, 1)),
        ("", (0, 1), (2, 1)),
    ],
)
@pytest.mark.parametrize("is_pinned", [True, False])
async def test_the_mode_says_what_is_asked_twice(
    fake: FakeRegistry, name: str, mode: str, by_digest: tuple[int, int], by_tag: tuple[int, int], is_pinned: bool
) -> None:
    wanted = reference(name, cache=mode) if is_pinned else reference(name, ":1", cache=mode)
    assert await count_requests(fake, wanted) == (by_digest if is_pinned else by_tag)


@pytest.mark.parametrize(
    ("operator", "setting", "parameter", "expected"),
    [
        (CacheMode.NEVER, "always", "always", (2, 2)),
        (CacheMode.ALWAYS, "never", "never", (1, 1)),
        (None, "always", "never", (2, 2)),
        (None, "never", "always", (1, 1)),
        (None, "always", "", (1, 1)),
        (None, "never", "", (2, 2)),
        (None, "", "", (2, 1)),
    ],
)
async def test_the_operators_mode_comes_before_the_references_and_that_before_the_default(
    fake: FakeRegistry,
    name: str,
    operator: CacheMode | None,
    setting: str,
    parameter: str,
    expected: tuple[int, int],
) -> None:
    settings = {"default-cache-mode": setting} if setting else {}
    options = EngineOptions(cache_mode=operator)
    assert await count_requests(fake, reference(name, ":1", cache=parameter), settings, options=options) == expected


async def test_a_mode_that_is_none_is_refused_before_anybody_is_asked(fake: FakeRegistry, name: str) -> None:
    with pytest.raises(ResolutionError, match="expected auto, always or never"):
        await count_requests(fake, reference(name, cache="Always"))
    assert fake.seen == []


@pytest.mark.parametrize("limits", [CacheLimits(lifetime=timedelta(0)), CacheLimits(size_bytes=100)])
async def test_what_may_not_be_kept_so_long_or_so_large_is_asked_for_again(
    fake: FakeRegistry, name: str, limits: CacheLimits
) -> None:
    assert await count_requests(fake, reference(name), cache=ContentCache(limits)) == (0, 2)


async def test_what_a_tag_named_before_is_not_given_for_what_it_names_now(fake: FakeRegistry, name: str) -> None:
    engine = BundleHarness(name).engine()
    first = (await engine.resolve(reference(name, ":1"), WEB)).resolved
    fake.push("boxes", "1", *build_image([object_layer("build", data=b"apiVersion: v1\nkind: Other\n")]))
    second = (await engine.resolve(reference(name, ":1"), WEB)).resolved
    assert first.pinned != second.pinned
    assert second.data.endswith(b"Other\n")
