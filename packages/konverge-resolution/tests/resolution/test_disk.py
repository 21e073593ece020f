"""The resolver for a local directory: what it reads, what it refuses, and where it exists."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from konverge.errors import ConfigurationError
from konverge_resolution import Digest, Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Requester, ResolutionResult
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.resolved_content import MAX_CONTENT_BYTES
from konverge_resolution._internal.resolvers import list_resolver_names
from konverge_resolution._internal.resolvers.disk import DiskResolver
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution.local_engine import LocalSetup, local_engine

pytestmark = pytest.mark.anyio

BOX = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture
def anyio_backend() -> object:
    return "asyncio", {}  # files are read in a thread, whose time is real


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    """A directory with a file, beside a file that no reference may reach."""
    folder = tmp_path / "boxes"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "box.yaml").write_bytes(BOX)
    (tmp_path / "private.yaml").write_bytes(BOX)
    return folder


async def read(folder: Path, path: str, *policies: Policy, **params: str) -> ResolutionResult:
    async with local_engine([], LocalSetup(directory=folder, policies=policies)) as engine:
        return await engine.resolve(Reference("disk", {"path": path, **params}), Requester("web"))


async def expect_error(folder: Path, path: str, *policies: Policy, **params: str) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await read(folder, path, *policies, **params)
    return caught.value


@pytest.mark.slow
async def test_a_file_has_an_address_without_the_path_of_this_machine(boxes: Path) -> None:
    result = await read(boxes, "./shop//box.yaml")
    assert result.resolved.data == BOX
    assert result.resolved.source.uri == "disk://local/shop/box.yaml"
    assert str(boxes) not in repr(result)


async def test_a_change_is_seen_at_once_and_a_digest_fixes_the_content(boxes: Path) -> None:
    (boxes / "shop" / "box.yaml").write_bytes(BOX + b"data: {a: b}\n")
    assert (await read(boxes, "shop/box.yaml")).object["data"] == {"a": "b"}
    error = await expect_error(boxes, "shop/box.yaml", digest=str(Digest.of(BOX)))
    assert error.reason is Reason.DIGEST_MISMATCH


@pytest.mark.parametrize(
    "path", ["../private.yaml", "shop/../../private.yaml", "%2e%2e/private.yaml", "", "shop/", "a\\b"]
)
async def test_a_path_out_of_the_directory_is_no_path(boxes: Path, path: str) -> None:
    error = await expect_error(boxes, path)
    assert error.reason is Reason.INVALID_PARAMETERS
    assert "parameter 'path'" in error.message


async def test_an_absolute_path_is_one_below_the_directory(boxes: Path) -> None:
    assert (await expect_error(boxes, str(boxes / "shop" / "box.yaml"))).reason is Reason.NOT_FOUND
    assert (await read(boxes, "/shop/box.yaml")).resolved.data == BOX


async def test_links_are_followed_only_within_the_directory(boxes: Path) -> None:
    (boxes / "inside.yaml").symlink_to("shop/box.yaml")
    (boxes / "outside.yaml").symlink_to("../private.yaml")
    (boxes / "up").symlink_to("..")
    (boxes / "circle.yaml").symlink_to("circle.yaml")
    assert (await read(boxes, "inside.yaml")).resolved.data == BOX
    for path in ("outside.yaml", "up/private.yaml", "circle.yaml"):
        error = await expect_error(boxes, path)
        assert error.reason is Reason.DENIED
        assert "link" in error.message


async def test_what_is_no_regular_file_is_refused_and_nothing_waits_for_it(boxes: Path) -> None:
    os.mkfifo(boxes / "pipe.yaml")
    for path in ("pipe.yaml", "shop"):
        assert (await expect_error(boxes, path)).reason is Reason.UNSUPPORTED_CONTENT


async def test_a_missing_file_is_not_found_with_a_suggestion(boxes: Path) -> None:
    error = await expect_error(boxes, "shop/bx.yaml")
    assert error.reason is Reason.NOT_FOUND
    assert error.message.endswith(f"directory {boxes} has no such file; did you mean 'box.yaml'?")
    assert (await expect_error(boxes, "shop/box.yaml/x")).reason is Reason.NOT_FOUND
    assert (await expect_error(boxes, "a" * 300)).reason is Reason.DENIED
    error = await expect_error(boxes, "a/" * 1000)
    assert error.message == "parameter 'path': expected at most 1000 characters, found 2000"


async def test_a_file_above_the_limit_is_too_large(boxes: Path) -> None:
    (boxes / "large.yaml").write_bytes(BOX + b"#" * MAX_CONTENT_BYTES)
    assert (await expect_error(boxes, "large.yaml")).reason is Reason.TOO_LARGE


async def test_policies_name_its_files(boxes: Path) -> None:
    ours = Policy("ours", resolvers=("disk",), sources=(SourcePrefix.parse("disk://local/shop"),))
    assert (await read(boxes, "shop/box.yaml", ours)).policies == ("ours",)
    (boxes / "other.yaml").write_bytes(BOX)
    assert (await expect_error(boxes, "other.yaml", ours)).reason is Reason.DENIED


async def test_without_a_directory_there_is_no_such_resolver(boxes: Path) -> None:
    async with local_engine([]) as engine:
        with pytest.raises(ResolutionError) as caught:
            await engine.resolve(Reference("disk", {"path": "shop/box.yaml"}), Requester("web"))
    assert caught.value.reason is Reason.RESOLVER_NOT_AVAILABLE
    assert DiskResolver.name not in list_resolver_names()
    with pytest.raises(ConfigurationError, match="expected a directory, found none"):
        async with local_engine([], LocalSetup(directory=boxes / "missing")):
            raise AssertionError
