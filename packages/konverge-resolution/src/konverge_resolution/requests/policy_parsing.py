"""`ResolutionPolicy` objects as policies, and what holds while one of them cannot be read. Pure.

A policy that cannot be read is no reason to let anything through, nor to forget that there was one: requests that it
would have concerned are refused, and told why, until somebody mends it. Which those are is taken from what can be read
of it; a part that cannot be concerns everybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from konverge.crd import decode
from konverge.errors import DecodeError
from konverge.kube import Object
from konverge_resolution.errors import ResolutionError
from konverge_resolution.policy import Policy, SignatureMode, SignatureRule, SourcePrefix, parse_networks
from konverge_resolution.reasons import Reason
from konverge_resolution.requests.api_types import ResolutionPolicy, SignatureRequirement

__all__ = ["InvalidPolicy", "PolicySet", "parse_policies", "parse_policy"]


@dataclass(frozen=True, slots=True)
class InvalidPolicy:
    """A policy of which nobody knows what it says.

    Args:
        scope: Whom it concerns at most; only its name, resolvers and namespaces mean anything.
        errors: What is wrong with it, each with its field.
    """

    scope: Policy
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All policies of a cluster.

    Args:
        valid: Those that count.
        invalid: Those that refuse what they concern.
    """

    valid: tuple[Policy, ...] = ()
    invalid: tuple[InvalidPolicy, ...] = ()

    def check(self, resolver: str, namespace: str) -> None:
        """Refuse what a policy concerns that cannot be read.

        Raises:
            ResolutionError: ``InvalidConfiguration``.
        """
        for each in self.invalid:
            if each.scope.applies_to(resolver, namespace):
                message = f"ResolutionPolicy {each.scope.name} cannot be read, and may forbid this: {each.errors[0]}"
                raise ResolutionError(Reason.INVALID_CONFIGURATION, message)


def parse_policies(objects: Iterable[Object], known: Collection[str] | None = None) -> PolicySet:
    """All policies, sorted by name.

    Args:
        objects: The policies.
        known: As for `parse_policy`.
    """
    readable, unreadable = [], []
    for obj in sorted(objects, key=lambda obj: str(obj["metadata"]["name"])):
        found = parse_policy(obj, known)
        if isinstance(found, Policy):
            readable.append(found)
        else:
            unreadable.append(found)
    return PolicySet(tuple(readable), tuple(unreadable))


def parse_policy(obj: Object, known: Collection[str] | None = None) -> Policy | InvalidPolicy:
    """One policy, or every mistake in it.

    Args:
        obj: The policy.
        known: The resolvers that there are. A policy for any other concerns the requests to all of them, since it is
            not known which one is meant. None looks at no name.
    """
    name = str(obj["metadata"]["name"])
    try:
        spec = decode(ResolutionPolicy, obj).spec
    except DecodeError as error:
        return InvalidPolicy(_parse_scope(name, obj.get("spec")), (error.problem,))
    mistakes: list[str] = []
    sources = []
    for place, text in enumerate(spec.sources):
        try:
            sources.append(SourcePrefix.parse(text))
        except ValueError as error:
            mistakes.append(f"spec.sources[{place}]: {error}")
    networks: list[IPv4Network | IPv6Network] = []
    for place, text in enumerate(spec.private_networks):
        try:
            networks += parse_networks([text])
        except ValueError as error:
            mistakes.append(f"spec.privateNetworks[{place}]: {error}")
    signature = None if spec.signature is None else _parse_signature(spec.signature, mistakes)
    scope = _parse_scope(name, obj.get("spec"))
    if known is not None and (message := scope.find_unknown_resolver(known)):
        mistakes.append(f"spec.resolvers: {message}")
        scope = replace(scope, resolvers=())
    if mistakes:
        return InvalidPolicy(scope, tuple(mistakes))
    return Policy(
        name=name,
        resolvers=tuple(spec.resolvers),
        namespaces=tuple(spec.namespaces),
        sources=tuple(sources),
        parameters={name: tuple(allowed) for name, allowed in spec.parameters.items()},
        requires_digest=spec.requires_digest,
        signature=signature,
        private_networks=tuple(networks),
        is_public=spec.public,
    )


def _parse_signature(asked: SignatureRequirement, mistakes: list[str]) -> SignatureRule:
    for place, key in enumerate(asked.keys):
        try:
            load_pem_public_key(key.encode())
        except (ValueError, UnsupportedAlgorithm):
            mistakes.append(f"spec.signature.keys[{place}]: expected a public key in PEM")
    if not asked.keys and not asked.identities:
        mistakes.append("spec.signature: expected at least one key or identity")
    identities = tuple((each.subject, each.issuer) for each in asked.identities)
    return SignatureRule(SignatureMode(asked.mode), tuple(asked.keys), identities)


def _parse_scope(name: str, spec: Any) -> Policy:
    return Policy(name, resolvers=_parse_texts(spec, "resolvers"), namespaces=_parse_texts(spec, "namespaces"))


def _parse_texts(spec: Any, field: str) -> tuple[str, ...]:
    """A list of texts; empty, which is everybody, for anything else."""
    found = spec.get(field) if isinstance(spec, dict) else None
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        return tuple(found)
    return ()
