"""What is kept and for whom; what a configuration may say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_resolution import Provenance, Reason, ResolutionError, ResolvedContent, Setting
from konverge_resolution._internal.content_cache import (
    CacheKey,
    CacheLimits,
    CacheMode,
    ContentCache,
    build_cache_key,
    is_cacheable,
)
from konverge_resolution._internal.resolver_settings import parse_settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = ResolutionError(Reason.NOT_FOUND, "no such file")
SETTINGS = {
    "timeout": Setting("t", "duration", "1m"),
    "server-url": Setting("s"),
    "private": Setting("p", "boolean", "false"),
}


def answer(size: int = 10) -> ResolvedContent:
    return ResolvedContent(b"x" * size, Provenance("https://example.com/a", {"sha256": "0"}))


def key(name: str, tenant: str = "web") -> CacheKey:
    return build_cache_key("git", {"url": name}, {}, tenant=tenant)


def test_another_tenant_does_not_get_what_is_kept() -> None:
    cache = ContentCache()
    cache.store(key("a", "web"), answer(), NOW)
    assert cache.get(key("a", "web"), NOW) is not None
    assert cache.get(key("a", "other"), NOW) is None


def test_an_entry_lives_as_long_as_it_may() -> None:
    cache = ContentCache()
    cache.store(key("a"), answer(), NOW)
    cache.store(key("b"), FAILED, NOW)
    assert cache.get(key("b"), NOW + timedelta(seconds=14)) is FAILED
    assert cache.get(key("b"), NOW + timedelta(seconds=15)) is None
    assert cache.get(key("a"), NOW + timedelta(seconds=299)) is not None
    assert cache.get(key("a"), NOW + timedelta(minutes=5)) is None
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache = ContentCache(CacheLimits(entries=2))
    for name in ("a", "b"):
        cache.store(key(name), answer(), NOW)
    cache.get(key("a"), NOW)
    cache.store(key("c"), answer(), NOW)
    assert [cache.get(key(name), NOW) is not None for name in ("a", "b", "c")] == [True, False, True]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 600)), max_size=30))
def test_bytes_are_bounded_whatever_is_kept(puts: list[tuple[int, int]]) -> None:
    cache = ContentCache(CacheLimits(size_bytes=1000))
    for name, size in puts:
        cache.store(key(str(name)), answer(size), NOW)
        assert 0 <= cache.size_bytes <= 1000
        assert (cache.size_bytes == 0) is (len(cache) == 0)


@pytest.mark.parametrize(
    ("operator", "asked", "is_pinned", "expected"),
    [
        (None, None, True, True),
        (None, None, False, False),
        (None, CacheMode.ALWAYS, False, True),
        (None, CacheMode.NEVER, True, False),
        (CacheMode.NEVER, CacheMode.ALWAYS, True, False),
        (CacheMode.ALWAYS, CacheMode.NEVER, False, True),
        (CacheMode.AUTO, CacheMode.ALWAYS, False, False),
    ],
)
def test_the_operators_mode_comes_first(
    operator: CacheMode | None, asked: CacheMode | None, is_pinned: bool, expected: bool
) -> None:
    assert is_cacheable(operator=operator, asked=asked, is_pinned=is_pinned) is expected


def test_a_set_has_what_it_says_and_the_rest_from_outside() -> None:
    found, mistakes = parse_settings({"timeout": "30s", "internal.server-url": "https://a"}, SETTINGS)
    assert mistakes == ()
    assert found.select("internal") == {"timeout": "30s", "server-url": "https://a", "private": "false"}
    assert found.select() == {"timeout": "30s", "server-url": "", "private": "false"}


def test_the_set_default_is_chosen_by_whoever_names_none() -> None:
    found, _ = parse_settings({"default.server-url": "https://a"}, SETTINGS)
    assert found.select()["server-url"] == "https://a"


def test_a_set_that_does_not_exist_is_refused_with_those_that_do() -> None:
    found, _ = parse_settings({"internal.timeout": "1s"}, SETTINGS)
    with pytest.raises(ResolutionError, match="available: internal"):
        found.select("externl")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"timeout": "banana"}, "timeout: expected a duration"),
        ({"timeout": "0"}, "timeout: expected a duration longer than zero"),
        ({"private": "nope"}, "private: expected true or false"),
        ({"tiemout": "1s"}, "tiemout: no such setting; did you mean 'timeout'?"),
        ({"a.b.timeout": "1s"}, "a.b.timeout: no such setting"),
        ({".timeout": "1s"}, ".timeout: no such setting"),
    ],
)
def test_every_mistake_names_its_key(data: dict[str, str], told: str) -> None:
    _, mistakes = parse_settings({**data, "_example": "timeout: 1m"}, SETTINGS)
    assert len(mistakes) == 1
    assert mistakes[0].startswith(told)
