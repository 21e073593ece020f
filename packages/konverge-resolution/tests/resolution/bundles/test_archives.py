"""Archives with many files: artifacts of Flux, charts of Helm, folders of oras; and what hostile ones try."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.resolvers.bundles.archives import list_archive, read_archive_file
from tests.resolution.bundles.sample_images import (
    TAR,
    TAR_GZIP,
    BundleHarness,
    Layer,
    build_image,
    build_tar,
    build_task,
)
from tests.resolution.servers.fake_registry import FakeRegistry

pytestmark = pytest.mark.anyio

TASK = build_task("build")
FILES = {"Chart.yaml": b"name: a\n", "tasks/build.yaml": TASK, "tasks/deploy.yaml": build_task("deploy")}
FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"
HELM = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
TITLE = "org.opencontainers.image.title"
LIMIT = 1 << 20


def build_archive(files: dict[str, bytes], *, format: int = tarfile.PAX_FORMAT, **header: Any) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=format) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in header.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def read(data: bytes, path: str = "tasks/build.yaml", limit: int = LIMIT) -> bytes | None:
    return read_archive_file(data, path, max_bytes=limit, what="image a")[0]


def refusal(data: bytes, path: str = "tasks/build.yaml", limit: int = LIMIT) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        read(data, path, limit)
    return caught.value


LONG = "/".join(["directory" * 5] * 5) + "/b\u00fcild.yaml"


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("is_packed", [True, False])
def test_a_file_is_found_by_its_path_whatever_packed_it(format: int, is_packed: bool) -> None:
    archive = build_archive({**FILES, LONG: TASK, "./dotted/a.yaml": TASK}, format=format)
    data = gzip.compress(archive) if is_packed else archive
    for path in ("tasks/build.yaml", "./tasks//build.yaml", LONG, "dotted/a.yaml"):
        assert read(data, path) == TASK
    for path in ("tasks", "build.yaml", "tasks/build", "missing"):
        assert read(data, path) is None
    assert list_archive(data, what="a").keys() == {*FILES, LONG, "dotted/a.yaml"}


def test_a_path_in_two_parts_of_the_header_is_one() -> None:
    name = f"{'a' * 90}/{'b' * 80}.yaml"
    assert read(build_archive({name: TASK}, format=tarfile.USTAR_FORMAT), name) == TASK


@pytest.mark.parametrize("name", ["/etc/passwd", "../outside.yaml", "a/../../b.yaml", "a\\b.yaml", "a\nb.yaml", "."])
def test_a_path_that_leads_out_of_the_archive_names_nothing(name: str) -> None:
    data = build_archive({name: TASK, "a.yaml": TASK})
    for asked in (name, name.lstrip("/."), "etc/passwd"):
        assert read(data, asked) is None
    assert list_archive(data, what="a") == {"a.yaml": len(TASK)}


@pytest.mark.parametrize("type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_a_link_or_a_device_is_not_read(type_: bytes) -> None:
    data = build_archive({"a.yaml": b""}, type=type_, linkname="/etc/passwd")
    assert "a link or a device" in refusal(data, "a.yaml").message
    assert list_archive(data, what="a") == {}


def test_a_file_that_is_there_twice_is_refused() -> None:
    data = build_archive({"a.yaml": TASK, "./a.yaml": b"other"})
    assert "expected file 'a.yaml' once, found several" in refusal(data, "a.yaml").message
    assert read(build_archive({"a.yaml": TASK, "./a.yaml": TASK, "b.yaml": TASK}), "b.yaml") == TASK


@pytest.mark.slow
def test_a_bomb_is_unpacked_to_the_limit_and_never_kept() -> None:
    bomb = gzip.compress(build_archive({"zeros": bytes(96 << 20), "a.yaml": TASK}))
    tracemalloc.start()
    error = refusal(bomb, "a.yaml")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (error.reason, "after decompression" in error.message) == (Reason.TOO_LARGE, True)
    assert peak < 4 << 20


def test_a_wanted_file_above_the_limit_is_refused_and_another_one_is_skipped() -> None:
    data = gzip.compress(build_archive({"large": bytes(8 << 20), "a.yaml": TASK}))
    assert refusal(data, "large").reason is Reason.TOO_LARGE
    assert read(data, "a.yaml") == TASK
    assert refusal(data, "a.yaml", limit=len(TASK) - 1).reason is Reason.TOO_LARGE


@pytest.mark.slow
def test_entries_are_counted() -> None:
    data = gzip.compress(build_archive({f"{number}": b"" for number in range(10_001)}))
    assert "at most 10000 entries" in refusal(data).message
    long = gzip.compress(build_archive({f"{'long' * 60}/{number}": b"" for number in range(6_000)}))
    assert len(list_archive(long, what="a")) == 6_000  # each has a header for its name


def resize(data: bytes, field: bytes) -> bytes:
    made = bytearray(data)
    made[124:136] = field
    made[148:156] = b" " * 8
    made[148:156] = f"{sum(made[:512]):06o}\0 ".encode()
    return bytes(made)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"not an archive", "a damaged one"),
        (gzip.compress(b"x" * 2000, mtime=0), "a damaged one"),
        (gzip.compress(build_archive(FILES), mtime=0)[:-30], "a truncated one"),
        (b"\x1f\x8b" + b"x" * 100, "a damaged one"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 100, "found zstd"),
        (build_archive(FILES)[:515], "a truncated one"),
        (resize(build_archive({"a": TASK}, format=tarfile.USTAR_FORMAT), b"77777777777\0"), "a truncated one"),
        (resize(build_archive({"a": TASK}, format=tarfile.USTAR_FORMAT), b"\x80" + b"\xff" * 11), "a truncated one"),
        (resize(build_archive({"a": TASK}, format=tarfile.USTAR_FORMAT), b"-0000000001\0"), "a damaged one"),
        (
            gzip.compress(build_archive(FILES)[:512], mtime=0) + gzip.compress(build_archive(FILES)[512:], mtime=0),
            "one member",
        ),
        (build_archive({"a": TASK}, pax_headers={"size": "1"}), "a second size"),
        (build_archive({"a": TASK}, pax_headers={"GNU.sparse.major": "1"}), "a sparse file"),
        (build_archive({"a": TASK}, pax_headers={"path": "x" * 70_000}), "short headers"),
    ],
)
def test_what_is_no_plain_archive_is_refused_by_what_it_is(data: bytes, told: str) -> None:
    assert told in refusal(data).message


@given(st.binary(max_size=2000), st.integers(0, 3000), st.booleans())
def test_no_damage_raises_anything_else(noise: bytes, at: int, is_packed: bool) -> None:
    data = build_archive({**FILES, LONG: TASK})
    data = data[:at] + noise + data[at + len(noise) :]
    with suppress(ResolutionError):
        read(gzip.compress(data, 1) if is_packed else data)


# From a registry.


@pytest.fixture
def artifacts(fake: FakeRegistry) -> BundleHarness:
    archive = gzip.compress(build_archive(FILES))
    folder = Layer(archive, TAR_GZIP, {TITLE: "boxes", "io.deis.oras.content.unpack": "true"})
    signature = Layer(b"signed", "application/vnd.cncf.helm.chart.provenance.v1.prov")
    for name, layers in {
        "flux": [Layer(archive, FLUX)],
        "helm": [Layer(archive, HELM), signature],
        "folder": [folder],
        "docker": [Layer(archive, "application/vnd.docker.image.rootfs.diff.tar.gzip")],
        "untyped": [Layer(TASK, TAR, {TITLE: "tasks/build.yaml"}), Layer(b"x", TAR, {TITLE: "readme"})],
        "binary": [Layer(TASK, "application/octet-stream", {TITLE: "tasks/build.yaml"})],
        "packed": [Layer(build_tar(TASK), TAR, {TITLE: "tasks/build.yaml"})],
        "several": [Layer(archive, TAR_GZIP), Layer(archive + b"\0", TAR_GZIP)],
    }.items():
        fake.push(name, "1", *build_image(layers))
    return BundleHarness(fake.name())


@pytest.mark.parametrize("name", ["flux", "helm", "folder", "docker", "untyped", "binary", "packed"])
async def test_what_other_tools_push_is_read_by_the_path_of_the_file(artifacts: BundleHarness, name: str) -> None:
    found = await artifacts.get(f"{name}:1", "tasks/build.yaml")
    assert (found.data, found.source.entry_point, found.annotations) == (TASK, "tasks/build.yaml", {})


async def test_a_file_that_is_not_in_it_is_told_with_those_that_are(artifacts: BundleHarness) -> None:
    with pytest.raises(ResolutionError) as caught:
        await artifacts.get("flux:1", "tasks/biuld.yaml")
    assert caught.value.reason is Reason.NOT_FOUND
    assert "available: 'Chart.yaml', 'tasks/build.yaml', 'tasks/deploy.yaml'" in caught.value.message
    assert "did you mean 'tasks/build.yaml'?" in caught.value.message


async def test_layers_that_change_each_other_are_refused(artifacts: BundleHarness) -> None:
    with pytest.raises(ResolutionError, match="or one archive, found") as caught:
        await artifacts.get("several:1", "tasks/build.yaml")
    assert caught.value.reason is Reason.UNSUPPORTED_CONTENT


async def test_an_archive_above_the_limit_is_not_fetched(fake: FakeRegistry) -> None:
    fake.push("large", "1", *build_image([Layer(bytes((16 << 20) + 1), FLUX)]))
    with pytest.raises(ResolutionError) as caught:
        await BundleHarness(fake.name()).get("large:1", "a")
    assert caught.value.reason is Reason.TOO_LARGE
    assert fake.count("GET", "blobs") == 0
