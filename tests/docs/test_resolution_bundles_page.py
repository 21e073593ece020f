"""The tables of docs/resolution/bundles.md and signatures.md match the code, and the examples work."""

from __future__ import annotations

import re
from typing import Any

import yaml

from konverge_resolution import Reason
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.requests.policy_parsing import parse_policy
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.resolvers.bundles import INDEX_DIGEST, BundlesResolver
from konverge_resolution._internal.resolvers.bundles.attached_signatures import MAX_SIGNATURES
from konverge_resolution._internal.resolvers.bundles.image_reference import name_source
from konverge_resolution._internal.resolvers.bundles.layer_selection import API_VERSION, KIND, MAX_LAYERS, NAME, TITLE
from konverge_resolution._internal.signatures import BUNDLE, SIGNATURE, object_signatures
from konverge_resolution._internal.signatures.cosign_signatures import SIGSTORE_BUNDLE, SIMPLE_SIGNING
from konverge_resolution._internal.signatures.keys import PublicKey
from konverge_resolution._internal.signatures.tekton_signatures import TEKTON_SIGNATURE
from konverge_resolution._internal.source_prefix import SourcePrefix
from tests.docs.pages import find_code_blocks, read_page
from tests.docs.resolver_tables import build_parameter_table, build_setting_table
from tests.resolution.signatures.signers import RIGHT

PAGE = "docs/resolution/bundles.md"
SIGNATURES = "docs/resolution/signatures.md"
RESOLVER = BundlesResolver()


def first_column(page: str, head: str) -> list[str]:
    """Return the code in the first column of the table with that heading."""
    table = read_page(page).partition(f"{head}\n")[2].partition("\n\n")[0]
    return [name for line in table.splitlines()[1:] for name in re.findall(r"`([^`]+)`", line.split("|")[1])]


def test_the_page_has_every_parameter_and_setting_as_the_code_has_them() -> None:
    assert build_parameter_table(RESOLVER) in read_page(PAGE)
    assert build_setting_table(RESOLVER) in read_page(PAGE)


def test_the_reference_that_the_page_shows_is_valid_and_comes_from_where_it_says() -> None:
    settings = parse_settings({}, RESOLVER.settings)[0].select()
    example = yaml.safe_load(find_code_blocks(PAGE, "yaml")[0])
    uri = RESOLVER.source_uri(RESOLVER.validate(example["params"], settings), settings)
    assert f"the source is\n`{uri}`" in read_page(PAGE)


def test_the_policy_that_the_page_shows_names_all_that_docker_hub_needs() -> None:
    spec = yaml.safe_load(find_code_blocks(PAGE, "yaml")[1])["spec"]
    sources = [SourcePrefix.parse(source) for source in spec["sources"]]
    (realm,) = [each.partition("=")[2] for each in RESOLVER.settings["token-realms"].default.split(", ")
                if each.startswith("registry-1.docker.io=")]  # fmt: skip
    needed = [
        RESOLVER.source_uri({"bundle": "alpine"}, {}),
        name_source("https://registry-1.docker.io/v2/library/alpine/manifests/latest"),
        f"https://{realm}/token",
    ]
    assert [any(source.matches(place) for source in sources) for place in needed] == [True] * 3
    assert spec["resolvers"] == [RESOLVER.name]


def test_the_reasons_of_the_page_are_reasons() -> None:
    named = first_column(PAGE, "| reason | when |")
    assert set(named) <= {reason.value for reason in Reason}
    assert len(named) == 10


def test_the_annotations_and_limits_of_the_pages_are_those_of_the_code() -> None:
    text = read_page(PAGE)
    assert all(f"`{name}`" in text for name in (NAME, KIND, API_VERSION, TITLE, INDEX_DIGEST))
    assert f"at most {MAX_LAYERS} layers" in text
    assert first_column(SIGNATURES, "| annotation | what it is |") == [SIGNATURE, BUNDLE]
    page_text = read_page(SIGNATURES)
    assert f"up to {object_signatures.MAX_SIGNATURES} between commas" in page_text
    assert f"Up to {MAX_SIGNATURES} are looked at" in page_text
    assert all(f"`{name}" in page_text for name in (SIMPLE_SIGNING, SIGSTORE_BUNDLE, TEKTON_SIGNATURE))


def test_the_policy_that_the_page_shows_is_one() -> None:
    policy = parse_policy(yaml.safe_load(find_code_blocks(SIGNATURES, "yaml")[0]))
    assert isinstance(policy, Policy)
    assert policy.signature is not None
    (key,) = policy.signature.keys
    PublicKey(key)
    assert policy.signature.identities[0][1].startswith("https://")


def test_the_page_requires_a_statement_that_a_policy_can_require() -> None:
    spec = yaml.safe_load(find_code_blocks(SIGNATURES, "yaml")[1])["spec"]
    policy = parse_policy({"metadata": {"name": "a"}, "spec": spec})
    assert isinstance(policy, Policy)
    assert policy.signature is not None
    assert policy.signature.attestation is not None
    assert policy.signature.attestation.predicate_type.startswith("https://slsa.dev/")


def test_what_the_page_signs_is_signed() -> None:
    example: dict[str, Any] = {"definition": {"apiVersion": "v1", "kind": "A"}, "private_key_pem": RIGHT.private}
    exec(find_code_blocks(SIGNATURES, "python")[0], example)
    assert SIGNATURE in example["signed"]["metadata"]["annotations"]
