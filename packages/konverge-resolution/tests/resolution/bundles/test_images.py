"""Names of images: each has one spelling, and what can be read in two ways is none."""

from __future__ import annotations

import pytest

from konverge_resolution._internal.resolvers.bundles.image_reference import parse_image

HEX = "ab" * 32


@pytest.mark.parametrize(
    ("text", "written", "host"),
    [
        ("registry.example.com/team/boxes:1.2", "registry.example.com/team/boxes:1.2", "registry.example.com"),
        ("registry.example.com/boxes", "registry.example.com/boxes:latest", "registry.example.com"),
        ("registry.example.com:443/boxes:1", "registry.example.com/boxes:1", "registry.example.com"),
        ("REGISTRY.example.com:5000/boxes:1", "registry.example.com:5000/boxes:1", "registry.example.com:5000"),
        ("localhost/boxes:1", "localhost/boxes:1", "localhost"),
        ("localhost:5000/boxes", "localhost:5000/boxes:latest", "localhost:5000"),
        ("127.0.0.1:5000/boxes", "127.0.0.1:5000/boxes:latest", "127.0.0.1:5000"),
        ("[0:0::1]:5000/boxes", "[::1]:5000/boxes:latest", "[::1]:5000"),
        ("boxes", "docker.io/library/boxes:latest", "registry-1.docker.io"),
        ("team/boxes:1", "docker.io/team/boxes:1", "registry-1.docker.io"),
        ("docker.io/boxes", "docker.io/library/boxes:latest", "registry-1.docker.io"),
        ("index.docker.io/team/boxes", "docker.io/team/boxes:latest", "registry-1.docker.io"),
        ("oci://registry.example.com/boxes:1", "registry.example.com/boxes:1", "registry.example.com"),
        (f"a.example/b@sha256:{HEX}", f"a.example/b@sha256:{HEX}", "a.example"),
        (f"a.example/b:1@sha256:{HEX}", f"a.example/b@sha256:{HEX}", "a.example"),
        (f"a.example/b__c/d-e.f:1_a@sha512:{HEX * 2}", f"a.example/b__c/d-e.f@sha512:{HEX * 2}", "a.example"),
    ],
)
def test_an_image_has_one_spelling_and_one_host(text: str, written: str, host: str) -> None:
    found = parse_image(text)
    assert (str(found), found.host) == (written, host)
    assert parse_image(written) == found


def test_the_address_that_policies_see_has_neither_tag_nor_digest() -> None:
    assert parse_image("a.example:5000/b/c:1").uri == "oci://a.example:5000/b/c"
    assert parse_image(f"boxes@sha256:{HEX}").uri == "oci://docker.io/library/boxes"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/boxes",
        "a.example/",
        "a.example/Boxes",
        "a.example/../boxes",
        "a.example/b//c",
        "a.example/b%2fc",
        "a.example/boxes:",
        "a.example/boxes:-1",
        "a.example/boxes:a/b",
        "a.example/boxes?x=1",
        "a.example/boxes#x",
        "user:secret@a.example/boxes",
        "a.example:0/boxes",
        "a.example:99999/boxes",
        "a.example:5000:1/boxes",
        "127.1:5000/boxes",
        "0x7f.0.0.1/boxes",
        "0177.0.0.1:5000/boxes",
        "[::1/boxes",
        "a..example/boxes",
        "a.example/boxes\n",
        "a.example/boxes@sha256:abc",
        "a.example/boxes@md5:" + "a" * 32,
        "http://a.example/boxes",
        f"a.example/{'b' * 600}",
    ],
)
def test_what_is_no_image_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_image(text)
