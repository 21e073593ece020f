"""What a policy makes of a signature: the table of Tekton's trusted resources, by way of the engine."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from konverge.clock import SeededEntropy, SimulatedClock
from konverge_resolution import Reason, Reference, ResolutionError, Services
from konverge_resolution._internal.engine import Engine, Requester, ResolutionResult
from konverge_resolution._internal.policy import Policy, PolicyDecision, SignatureMode, SignatureRule
from konverge_resolution._internal.resolver_registry import InstalledResolver, ResolverRegistry
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution.signatures import SignatureVerifier, sign
from tests.resolution.fake_resolver import FakeResolver
from tests.resolution.signatures.signers import OTHER, RIGHT

pytestmark = pytest.mark.anyio

BOX = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
SIGNED, UNSIGNED = sign(BOX, RIGHT.private), BOX
GOOD = "https://good/x"
ENFORCE, WARN = SignatureMode.ENFORCE, SignatureMode.WARN


def policy(mode: SignatureMode, *keys: str, source: str = GOOD) -> Policy:
    sources = (SourcePrefix.parse(source),) if source else ()
    return Policy(f"{mode}-{source}", sources=sources, signature=SignatureRule(mode, keys))


async def resolve_signed(obj: object, *policies: Policy, url: str = f"{GOOD}/box") -> ResolutionResult:
    def services_for(requester: Requester, admission: PolicyDecision) -> Services:
        nothing: Any = None
        return Services(http=nothing, secrets=nothing, workspaces=nothing, clock=clock)

    clock = SimulatedClock()
    shelf = FakeResolver(lambda fetch, calls: json.dumps(obj).encode())
    registry = ResolverRegistry([InstalledResolver(shelf)])
    verifier = SignatureVerifier()
    engine = Engine(registry, services_for, clock=clock, entropy=SeededEntropy(), policies=policies, verifier=verifier)
    return await engine.resolve(Reference("shelf", {"url": url}), Requester("web"))


async def expect_resolution_error(obj: object, *policies: Policy, url: str = f"{GOOD}/box") -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await resolve_signed(obj, *policies, url=url)
    return caught.value


async def test_without_a_policy_nothing_is_verified() -> None:
    outcome = await resolve_signed(UNSIGNED)
    assert (outcome.policies, outcome.warnings) == ((), ())


async def test_where_no_policy_names_a_source_one_for_everything_can_warn() -> None:
    outcome = await resolve_signed(
        UNSIGNED, policy(ENFORCE, RIGHT.public), policy(WARN, source=""), url="https://other/box"
    )
    assert outcome.policies == ("warn-",)
    assert len(outcome.warnings) == 1


async def test_where_no_policy_names_a_source_it_is_refused_before_anybody_is_asked() -> None:
    error = await expect_resolution_error(SIGNED, policy(ENFORCE, RIGHT.public), url="https://other/box")
    assert error.reason is Reason.DENIED


async def test_when_all_policies_are_met_it_passes_without_a_word() -> None:
    outcome = await resolve_signed(SIGNED, policy(ENFORCE, RIGHT.public), policy(WARN, RIGHT.public, source=""))
    assert (len(outcome.policies), outcome.warnings) == (2, ())


@pytest.mark.parametrize("other", [(), (policy(ENFORCE, RIGHT.public, source="https://good"),), (policy(WARN),)])
@pytest.mark.parametrize(("obj", "key"), [(UNSIGNED, RIGHT), (SIGNED, OTHER)])
async def test_a_policy_that_enforces_and_is_not_met_ends_it_whatever_others_say(
    obj: object, key: Any, other: tuple[Policy, ...]
) -> None:
    assert (await expect_resolution_error(obj, policy(ENFORCE, key.public), *other)).reason is Reason.SIGNATURE_INVALID


async def test_policies_that_only_warn_let_it_pass_and_each_says_what_is_wrong() -> None:
    outcome = await resolve_signed(UNSIGNED, policy(WARN, RIGHT.public), policy(WARN, OTHER.public, source=""))
    assert len(outcome.warnings) == 2


async def test_within_a_policy_any_key_is_enough_and_each_policy_needs_one() -> None:
    both = policy(ENFORCE, OTHER.public, RIGHT.public)
    assert (await resolve_signed(SIGNED, both)).warnings == ()
    second = policy(ENFORCE, OTHER.public, source="https://good")
    assert (await expect_resolution_error(SIGNED, both, second)).reason is Reason.SIGNATURE_INVALID
    twice = sign(SIGNED, OTHER.private)
    assert (await resolve_signed(twice, both, second)).warnings == ()


@pytest.mark.parametrize(
    "url",
    [
        "https://evil/?https://good/x",
        "https://evil/https://good/x",
        "https://good.evil/x",
        "https://evil/#https://good/x",
    ],
)
async def test_an_address_that_only_has_a_trusted_one_in_it_is_not_trusted(url: str) -> None:
    assert (await expect_resolution_error(SIGNED, policy(ENFORCE, RIGHT.public), url=url)).reason is Reason.DENIED


@pytest.mark.parametrize("pattern", ["^https://good|evil$", "https://good|evil", "https://good/.*", "https://(good)"])
async def test_a_pattern_is_no_pattern_here_and_names_nothing(pattern: str) -> None:
    covered = []
    with suppress(ValueError):
        prefix = SourcePrefix.parse(pattern)
        covered = [uri for uri in ("https://good/x", "https://good", "https://evil", "evil") if prefix.matches(uri)]
    assert covered == []
