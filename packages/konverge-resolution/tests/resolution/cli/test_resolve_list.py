"""`konverge resolve bundles --list`: what is in an image, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Konverge
from tests.resolution.bundles.sample_images import BUNDLE, YAML, Layer, build_image
from tests.resolution.bundles.test_archives import TITLE
from tests.resolution.servers.fake_registry import FakeRegistry, fake_registry


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def test_the_command_prints_a_line_for_each(konverge: Konverge, fake: FakeRegistry) -> None:
    fake.push("boxes", "1", *BUNDLE)
    fake.push("hostile", "1", *build_image([Layer(b"x", YAML, {TITLE: "a\x1b[2J.yaml"})]))
    name = fake.name("127.0.0.1")
    reach = ["--setting", f"plain-http-registries={name}", "--allow-network", "127.0.0.0/8"]
    done = konverge("resolve", "bundles", "--bundle", f"{name}/boxes:1", "--list", *reach)
    sizes = [layer["size"] for layer in json.loads(BUNDLE[0])["layers"]]
    assert (done.stdout, done.stderr, done.returncode) == (
        f"task/build      tekton.dev/v1  {sizes[0]} B\n"
        f"pipeline/build  tekton.dev/v1  {sizes[1]} B\n"
        f"task/deploy     tekton.dev/v1  {sizes[2]} B\n",
        "",
        0,
    )
    record = json.loads(
        konverge("resolve", "bundles", "--bundle", f"{name}/boxes:1", "--list", "-o", "json", *reach).stdout
    )
    assert record[0]["params"] == {"kind": "task", "name": "build"}
    assert (record[0]["apiVersion"], record[0]["size"]) == ("tekton.dev/v1", sizes[0])
    assert record[0]["digest"].startswith("sha256:")
    hostile = konverge("resolve", "bundles", "--bundle", f"{name}/hostile:1", "--list", *reach)
    assert "\x1b" not in hostile.stdout
    missing = konverge("resolve", "bundles", "--bundle", f"{name}/boxes:9", "--list", "-o", "json", *reach)
    assert (missing.returncode, json.loads(missing.stdout)["error"]["reason"]) == (1, "NotFound")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["hub", "--name", "a", "--list"], 2, "No such option '--list'"),
        (["bundles", "--bundle", "a.example/b", "--list", "--lock", "x"], 2, "remove --lock and --digest"),
        (["bundles", "--bundle", "a.example/b", "--list", "--name", "x"], 1, "--name: has no effect on a list"),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_refused(
    konverge: Konverge, arguments: list[str], code: int, told: str
) -> None:
    done = konverge("resolve", *arguments)
    assert done.returncode == code
    assert told in " ".join(done.stderr.split())
