"""What a refusal says about how it would be allowed: in a cluster another thing than in a process of one's own."""

from __future__ import annotations

from typing import Any

import pytest

from konverge._internal.suggestions import closest_match, did_you_mean
from konverge.clock import SimulatedClock
from konverge_resolution import Digest, Provenance, Reason, Reference, ResolutionError, Services
from konverge_resolution._internal.cluster_services import ClusterServices
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.error_context import name_revision_in_errors, name_source_in_errors
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolvers import load_resolvers
from konverge_resolution.local_engine import CredentialSource, ErrorHints, LocalSecrets, LocalSetup, local_engine
from konverge_resolution.network import AllowedNetworks, RefusedAddressError

pytestmark = pytest.mark.anyio

LOOPBACK = "http://127.0.0.1:9/a.yaml"
WEB = Requester("web")


async def refusals(services: Services) -> list[str]:
    """What is said to a resolver that connects by itself, and to one that asks over HTTP."""
    addresses: Any = services.addresses
    with pytest.raises(ResolutionError) as refused:
        await addresses.resolve_permitted("127.0.0.1", 9)
    with pytest.raises(RefusedAddressError) as not_asked:
        await services.http.get(LOOPBACK, max_bytes=1)
    return [str(refused.value), str(not_asked.value)]


async def test_in_a_cluster_a_refused_network_names_the_field_of_a_policy() -> None:
    nobody: Any = None
    services = ClusterServices(nobody, clock=SimulatedClock())
    try:
        message = await refusals(services(WEB, PolicyDecision()))
    finally:
        services.close()
    assert [each.partition("; ")[2] for each in message] == [
        "permit it with spec.privateNetworks of a ResolutionPolicy"
    ] * 2


@pytest.mark.parametrize(
    ("hints", "told"),
    [
        (ErrorHints(), "permit it with privateNetworks of a policy or networks of LocalSetup"),
        (ErrorHints(networks="--allow it"), "--allow it"),
    ],
)
async def test_elsewhere_it_says_what_whoever_set_it_up_wants_to_be_said(hints: ErrorHints, told: str) -> None:
    async with local_engine(load_resolvers(["http"]), LocalSetup(hints=hints)) as engine:
        with pytest.raises(ResolutionError) as caught:
            await engine.resolve(Reference("http", {"url": LOOPBACK}), WEB)
    assert str(caught.value).endswith(f"its network is loopback; {told}")


def test_where_nobody_has_said_how_nothing_is_said() -> None:
    assert str(RefusedAddressError("a", "10.0.0.1", "private")) == (
        "a (10.0.0.1) may not be reached: its network is private"
    )
    assert AllowedNetworks().opened_by == ""


async def test_a_credential_that_nobody_has_named_is_told_with_how_that_is_done_and_without_its_name() -> None:
    secrets = LocalSecrets([CredentialSource("other", "token", "X")], "--credential so")
    for asked in (secrets.read_value("hunter2", "token"), secrets.read_all("hunter2")):
        with pytest.raises(
            ResolutionError, match="the reference names a credential without a location; add --credential so"
        ) as caught:
            await asked
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_a_digest_that_does_not_fit_is_told_with_the_one_that_was_found(algorithm: str) -> None:
    expected = Digest.of(b"expected", algorithm)
    assert expected.describe_mismatch(b"found") == (
        f"the content does not match its digest: expected {expected}, found {Digest.of(b'found', algorithm)}"
    )


@pytest.mark.parametrize(
    ("pinned", "told"),
    [
        ({"version": "a" * 40}, f"no file at main ({'a' * 40}) of 127.0.0.1"),
        ({"version": "0.0"}, f"no file at {'a' * 40} of 127.0.0.1"),
        ({}, f"no file at {'a' * 40} of 127.0.0.1"),
    ],
)
def test_a_commit_is_told_as_it_was_written_and_a_short_name_stands_for_itself(
    pinned: dict[str, str], told: str
) -> None:
    with pytest.raises(ResolutionError) as caught, name_revision_in_errors({"version": "main", "a": ["b"]}, pinned):
        raise ResolutionError(Reason.NOT_FOUND, f"no file at {'a' * 40} of 127.0.0.1")
    assert (caught.value.reason, caught.value.message) == (Reason.NOT_FOUND, told)


@pytest.mark.parametrize("uri", ["https://a.example/\x1b[2J", "https://a.example/" + "a" * 2000])
def test_a_source_that_no_terminal_should_see_is_not_told(uri: str) -> None:
    with pytest.raises(ResolutionError, match="^it is none$"), name_source_in_errors(Provenance(uri, {})):
        raise ResolutionError(Reason.UNSUPPORTED_CONTENT, "it is none")


def test_the_word_that_may_be_meant_is_one_that_can_be_shown() -> None:
    assert closest_match("mian", ["main", "other"]) == "main"
    assert did_you_mean("mian", ["xyz", "mia\x1b"]) == ""
    assert did_you_mean("b" * 300, ["b" * 250]) == ""
