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
from konverge.resolution.errors import ResolutionError
from konverge.resolution.policy import Policy, SignatureMode, SignatureRule, SourcePrefix, parse_networks
from konverge.resolution.reasons import Reason
from konverge.resolution.requests.kinds import ResolutionPolicy, SignatureRequirement

__all__ = ["Policies", "UnreadablePolicy", "read_policies", "read_policy"]


@dataclass(frozen=True, slots=True)
class UnreadablePolicy:
    """A policy of which nobody knows what it says.

    Args:
        scope: Whom it concerns at most; only its name, resolvers and namespaces mean anything.
        mistakes: What is wrong with it, each with its field.
    """

    scope: Policy
    mistakes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policies:
    """All policies of a cluster.

    Args:
        readable: Those that count.
        unreadable: Those that refuse what they concern.
    """

    readable: tuple[Policy, ...] = ()
    unreadable: tuple[UnreadablePolicy, ...] = ()

    def check(self, resolver: str, namespace: str) -> None:
        """Refuse what a policy concerns that cannot be read.

        Raises:
            ResolutionError: ``InvalidConfiguration``.
        """
        for each in self.unreadable:
            if each.scope.concerns(resolver, namespace):
                told = f"ResolutionPolicy {each.scope.name} cannot be read, and may forbid this: {each.mistakes[0]}"
                raise ResolutionError(Reason.INVALID_CONFIGURATION, told)


def read_policies(objects: Iterable[Object], known: Collection[str] | None = None) -> Policies:
    """All policies, sorted by name.

    Args:
        objects: The policies.
        known: As for `read_policy`.
    """
    readable, unreadable = [], []
    for obj in sorted(objects, key=lambda obj: str(obj["metadata"]["name"])):
        found = read_policy(obj, known)
        if isinstance(found, Policy):
            readable.append(found)
        else:
            unreadable.append(found)
    return Policies(tuple(readable), tuple(unreadable))


def read_policy(obj: Object, known: Collection[str] | None = None) -> Policy | UnreadablePolicy:
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
        return UnreadablePolicy(_scope(name, obj.get("spec")), (error.problem,))
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
    signature = None if spec.signature is None else _signature(spec.signature, mistakes)
    scope = _scope(name, obj.get("spec"))
    if known is not None and (told := scope.find_unknown_resolver(known)):
        mistakes.append(f"spec.resolvers: {told}")
        scope = replace(scope, resolvers=())
    if mistakes:
        return UnreadablePolicy(scope, tuple(mistakes))
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


def _signature(asked: SignatureRequirement, mistakes: list[str]) -> SignatureRule:
    for place, key in enumerate(asked.keys):
        try:
            load_pem_public_key(key.encode())
        except (ValueError, UnsupportedAlgorithm):
            mistakes.append(f"spec.signature.keys[{place}]: expected a public key in PEM")
    if not asked.keys and not asked.identities:
        mistakes.append("spec.signature: expected at least one key or identity")
    identities = tuple((each.subject, each.issuer) for each in asked.identities)
    return SignatureRule(SignatureMode(asked.mode), tuple(asked.keys), identities)


def _scope(name: str, spec: Any) -> Policy:
    return Policy(name, resolvers=_texts(spec, "resolvers"), namespaces=_texts(spec, "namespaces"))


def _texts(spec: Any, field: str) -> tuple[str, ...]:
    """A list of texts; empty, which is everybody, for anything else."""
    found = spec.get(field) if isinstance(spec, dict) else None
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        return tuple(found)
    return ()
