"""One file in a layer: packed in any of the usual ways, and bounded however much it claims to be."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.resolvers.bundles.layers import unpack
from tests.resolution.bundles.sample_images import TAR, TAR_GZIP, YAML, build_tar, build_task

CONTENT = build_task("build")
LIMIT = 1 << 20


def unpack_layer(data: bytes, media_type: str = TAR_GZIP, limit: int = LIMIT) -> bytes:
    return unpack(data, media_type, max_bytes=limit, what="layer")


def expect_unpack_error(data: bytes, media_type: str = TAR_GZIP, limit: int = LIMIT) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        unpack_layer(data, media_type, limit)
    return caught.value


def with_folder() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        info = tarfile.TarInfo("folder/" + "long" * 60 + "ä.yaml")  # has a header of its own for its name
        info.size = len(CONTENT)
        archive.addfile(info, io.BytesIO(CONTENT))
    return made.getvalue()


def extend_tar(record: bytes) -> bytes:
    """A tar whose file has a record before it that says something else of it than its own header."""
    return build_tar(record, type=tarfile.XHDTYPE)[:1024] + build_tar(CONTENT)


@pytest.mark.parametrize(
    "data",
    [
        build_tar(CONTENT),
        gzip.compress(build_tar(CONTENT), mtime=0),
        CONTENT,
        gzip.compress(CONTENT, mtime=0),
        gzip.compress(CONTENT[:9], mtime=0) + gzip.compress(CONTENT[9:], mtime=0),
        with_folder(),
        build_tar(CONTENT)[: 512 + len(CONTENT)],  # without the padding
    ],
)
def test_tar_or_not_and_gzip_or_not_the_file_comes_out(data: bytes) -> None:
    assert unpack_layer(data) == CONTENT


def test_a_large_file_comes_out_whole() -> None:
    content = b"a: " + b"x" * (LIMIT - 3)
    assert unpack_layer(gzip.compress(build_tar(content))) == content


def test_a_layer_with_zstd_is_refused_by_that_name() -> None:
    for data, media_type in ((b"\x28\xb5\x2f\xfd....", TAR_GZIP), (b"anything", f"{TAR}+zstd")):
        error = expect_unpack_error(data, media_type)
        assert error.reason is Reason.UNSUPPORTED_CONTENT
        assert "without compression or with gzip, found zstd" in error.message


def lying(size: int) -> bytes:
    made = bytearray(build_tar(CONTENT))
    made[124:136] = size.to_bytes(12, "big") if size >= 8**11 else f"{size:011o}\0".encode()
    if size >= 8**11:
        made[124] |= 0x80
    made[148:156] = b" " * 8
    made[148:156] = f"{sum(made[:512]):06o}\0 ".encode()
    return bytes(made)


@pytest.mark.parametrize("size", [LIMIT + 1, 10 << 30, 1 << 90])
def test_a_tar_header_that_claims_ten_gigabytes_costs_nothing(size: int) -> None:
    tracemalloc.start()
    error = expect_unpack_error(gzip.compress(lying(size)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.reason is Reason.TOO_LARGE
    assert peak < 1 << 20


def test_a_header_that_claims_more_than_there_is_is_refused() -> None:
    assert "a wrong size in a header" in expect_unpack_error(lying(LIMIT)).message


def test_a_bomb_of_gzip_is_unpacked_to_the_limit_and_no_further() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    error = expect_unpack_error(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.reason is Reason.TOO_LARGE
    assert peak < 4 * LIMIT


def test_many_small_parts_of_gzip_do_not_add_up_to_more() -> None:
    assert expect_unpack_error(gzip.compress(bytes(100_000)) * 20).reason is Reason.TOO_LARGE


def test_empty_parts_of_gzip_are_counted_since_each_copies_all_that_follow() -> None:
    assert unpack_layer(gzip.compress(b"") * 90 + gzip.compress(CONTENT)) == CONTENT
    assert "members" in expect_unpack_error(gzip.compress(b"") * 50_000).message


def test_a_file_larger_than_the_limit_is_refused_however_it_is_packed() -> None:
    content = b"x" * 2000
    for data in (content, build_tar(content), gzip.compress(content), gzip.compress(build_tar(content))):
        assert expect_unpack_error(data, limit=1999).reason is Reason.TOO_LARGE
        assert unpack_layer(data, limit=2000) == content


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (gzip.compress(build_tar(CONTENT), mtime=0)[:-20], "truncated"),
        (gzip.compress(build_tar(CONTENT), mtime=0)[:-4] + b"....", "damaged"),
        (b"\x1f\x8b" + b"x" * 50, "damaged"),
        (build_tar(CONTENT)[:530], "truncated"),
        (b"x" * 257 + build_tar(CONTENT)[257:], "damaged"),
        (build_tar(CONTENT, files=2), "found several"),
        (build_tar(b"", type=tarfile.DIRTYPE), "found none"),
        (build_tar(b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "a link"),
        (build_tar(b"", type=tarfile.LNKTYPE, linkname="a"), "a link"),
        (build_tar(b"", type=tarfile.CHRTYPE), "a device"),
        (build_tar(CONTENT, type=b"S"), "sparse"),
        (extend_tar(b"20 size=99999999999\n"), "with a second size"),
        (extend_tar(b"22 GNU.sparse.major=1\n"), "with a second size"),
    ],
)
def test_anything_but_one_plain_file_is_refused(data: bytes, told: str) -> None:
    error = expect_unpack_error(data)
    assert error.reason is Reason.UNSUPPORTED_CONTENT
    assert told in error.message


def test_nothing_of_a_layer_is_in_a_message() -> None:
    assert "secret" not in expect_unpack_error(gzip.compress(b"secret" * 999999)).message


@given(st.binary(max_size=3000), st.integers(0, 3))
def test_whatever_comes_it_is_a_file_within_the_limit_or_a_refusal(noise: bytes, packing: int) -> None:
    base = bytearray(build_tar(CONTENT))
    base[: len(noise)] = noise[: len(base)]
    data = [noise, bytes(base), gzip.compress(noise), zlib.compress(noise)][packing]
    with suppress(ResolutionError):
        assert len(unpack_layer(data, YAML, limit=1000)) <= 1000
