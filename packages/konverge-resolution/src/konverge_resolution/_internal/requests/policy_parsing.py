"""Conversion of `ResolutionPolicy` objects, and the treatment of invalid ones. Pure.

An invalid policy must not allow anything, and must not be ignored. Requests that it may apply to are refused with its
error until it is corrected. Its readable fields determine these requests; an unreadable field applies to all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from konverge._internal.crd import decode
from konverge._internal.kube import Object
from konverge.errors import DecodeError
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.policy import Attestation, Policy, SignatureMode, SignatureRule, parse_networks
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.requests.api_types import ResolutionPolicy, SignatureRequirement
from konverge_resolution._internal.source_prefix import SourcePrefix

__all__ = ["InvalidPolicy", "PolicySet", "parse_policies", "parse_policy"]


@dataclass(frozen=True, slots=True)
class InvalidPolicy:
    """Policy that cannot be parsed completely.

    Args:
        scope: The requests that it may apply to; only its name, resolvers and namespaces are valid.
        errors: The errors, each with its field.
    """

    scope: Policy
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All policies of a cluster.

    Args:
        valid: The valid policies.
        invalid: The policies that refuse the requests that they may apply to.
    """

    valid: tuple[Policy, ...] = ()
    invalid: tuple[InvalidPolicy, ...] = ()

    def check(self, resolver: str, namespace: str) -> None:
        """Refuse requests that an invalid policy may apply to.

        Raises:
            ResolutionError: ``InvalidConfiguration``: there is such a policy.
        """
        for policy in self.invalid:
            if policy.scope.applies_to(resolver, namespace):
                message = f"ResolutionPolicy {policy.scope.name} is invalid and may forbid this: {policy.errors[0]}"
                raise ResolutionError(Reason.INVALID_CONFIGURATION, message)


def parse_policies(objects: Iterable[Object], known: Collection[str] | None = None) -> PolicySet:
    """Parse all policies, sorted by name.

    Args:
        objects: The policies.
        known: As for `parse_policy`.
    """
    valid, invalid = [], []
    for obj in sorted(objects, key=lambda obj: str(obj["metadata"]["name"])):
        policy = parse_policy(obj, known)
        if isinstance(policy, Policy):
            valid.append(policy)
        else:
            invalid.append(policy)
    return PolicySet(tuple(valid), tuple(invalid))


def parse_policy(obj: Object, known: Collection[str] | None = None) -> Policy | InvalidPolicy:
    """Parse one policy, or collect all its errors.

    Args:
        obj: The policy.
        known: The existing resolvers. A policy for an unknown resolver applies to the requests of all resolvers,
            because the intended one is unknown. None accepts every name.
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
    for parameter, allowed in spec.parameters.items():
        if not allowed:
            mistakes.append(f"spec.parameters.{parameter}: expected at least one value, found none")
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


def _parse_signature(requirement: SignatureRequirement, mistakes: list[str]) -> SignatureRule:
    for place, key in enumerate(requirement.keys):
        try:
            load_pem_public_key(key.encode())
        except (ValueError, UnsupportedAlgorithm):
            mistakes.append(f"spec.signature.keys[{place}]: expected a public key in PEM")
    if not requirement.keys and not requirement.identities:
        mistakes.append("spec.signature: expected at least one key or identity")
    identities = tuple((identity.subject, identity.issuer) for identity in requirement.identities)
    attestation = None
    if (required := requirement.attestation) is not None:
        if not required.predicate_type:
            mistakes.append("spec.signature.attestation.predicateType: expected a type of statement, found none")
        attestation = Attestation(required.predicate_type, tuple(required.builders))
    return SignatureRule(SignatureMode(requirement.mode), tuple(requirement.keys), identities, attestation)


def _parse_scope(name: str, spec: Any) -> Policy:
    return Policy(name, resolvers=_parse_texts(spec, "resolvers"), namespaces=_parse_texts(spec, "namespaces"))


def _parse_texts(spec: Any, field: str) -> tuple[str, ...]:
    """Return a list of texts; an empty one, which applies to all, for anything else."""
    texts = spec.get(field) if isinstance(spec, dict) else None
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return tuple(texts)
    return ()
