"""Policies: which sources may be fetched, and which proofs are required. Pure.

Without a policy for a resolver and a namespace, the resolver's own configuration decides. With at least one such
policy, a policy must name the source. Then *each* policy that names it must be satisfied (digest, signature). Policies
name sources by prefixes that end at a separator of the address, in its canonical form (`source_prefix`). They are not
regular expressions, because a partial match of a pattern could bypass such a policy (CVE-2026-25542).

A policy permits exactly what it names, but restricts also what only may be the same source: another case of a path, or
an ambiguous path. Otherwise another spelling could use a wider policy to escape a stricter one. The same applies to the
values of parameters (`parameter_spellings`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from ipaddress import IPv4Network, IPv6Network

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.network import parse_network
from konverge_resolution._internal.parameter_spellings import (
    ParameterSpeller,
    may_be_named,
    names_value,
    spell_plainly,
)
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters, redact_source
from konverge_resolution._internal.resolver_registry import list_resolvers
from konverge_resolution._internal.source_prefix import SourcePrefix, canonicalize_source

__all__ = [
    "Attestation",
    "Policy",
    "PolicyDecision",
    "RequestPolicies",
    "SignatureMode",
    "SignatureRule",
    "admit",
    "parse_networks",
]

_MAX_LISTED = 5
_MAX_TEXT = 400


class SignatureMode(StrEnum):
    """Treatment of content whose signature is not valid."""

    ENFORCE = "enforce"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Attestation:
    """Statement about an image that must be signed, in place of the content.

    Args:
        predicate_type: The type of the statement, for example ``https://slsa.dev/provenance/v1``.
        builders: The accepted builders of a provenance statement; empty for all.
    """

    predicate_type: str
    builders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SignatureRule:
    """Signers; at least one of them must have signed the content, or a statement about its image.

    Args:
        mode: Treatment of content without a valid signature.
        keys: Public keys in PEM.
        identities: Subject and issuer of keyless signatures.
        attestation: The statement that must be signed; None for the content itself.
    """

    mode: SignatureMode = SignatureMode.ENFORCE
    keys: tuple[str, ...] = ()
    identities: tuple[tuple[str, str], ...] = ()
    attestation: Attestation | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy of the engine.

    Args:
        name: The name for messages.
        resolvers: The resolvers that it applies to; empty for all.
        namespaces: The namespaces that it applies to, ``team-*`` for a prefix; empty for all.
        sources: The allowed sources; empty for all.
        parameters: Allowed values by parameter, ``release-*`` for a prefix; an empty list allows no value. Other
            parameters are not restricted.
        requires_digest: Whether the reference needs a digest, or parameters with a permanent version.
        signature: The required signature; None for none.
        private_networks: The permitted private networks.
        is_public: Whether all tenants may share the cached content.
    """

    name: str
    resolvers: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    sources: tuple[SourcePrefix, ...] = ()
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    requires_digest: bool = False
    signature: SignatureRule | None = None
    private_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    is_public: bool = False

    def applies_to(self, resolver: str, namespace: str) -> bool:
        """Tell whether the policy applies to requests of this resolver and namespace."""
        is_resolver = not self.resolvers or resolver in self.resolvers
        return is_resolver and (not self.namespaces or _is_one_of(namespace, self.namespaces))

    def find_unknown_resolver(self, known: Collection[str]) -> str:
        """Describe an unknown resolver of the policy, which would otherwise restrict nothing.

        Args:
            known: The existing resolvers.

        Returns:
            The expected and the actual value; empty if all resolvers exist.
        """
        unknown = next((name for name in sorted(self.resolvers) if name not in known), None)
        if unknown is None:
            return ""
        return f"expected names of resolvers, found {unknown[:80]!r}; {list_resolvers(unknown, known)}"

    def allows(self, uri: str, params: Parameters, spell: ParameterSpeller = spell_plainly) -> bool:
        """Tell whether the policy allows this fetch."""
        return not self.describe_denial(uri, params, spell)

    def describe_denial(self, uri: str, params: Parameters, spell: ParameterSpeller = spell_plainly) -> str:
        """Describe why the policy denies this fetch; empty if it allows it. The message omits what it would allow.

        Args:
            uri: The address.
            params: The parameters.
            spell: Returns the spellings of their values.
        """
        if self.sources and not any(prefix.matches(uri) for prefix in self.sources):
            return "it allows other sources"
        parameter = self._find_other_parameter(params, partial(names_value, spell=spell))
        return "" if parameter is None else f"it allows other values of parameter {parameter[:80]!r}"

    def restricts(self, uri: str, params: Parameters, spell: ParameterSpeller = spell_plainly) -> bool:
        """Tell whether the requirements of the policy apply to this fetch, whether or not it allows the fetch.

        They apply to each source that may be one of `sources`, with values that may be those of `parameters`.
        """
        is_named = not self.sources or any(prefix.may_match(uri) for prefix in self.sources)
        return is_named and self._find_other_parameter(params, partial(may_be_named, spell=spell)) is None

    def _find_other_parameter(self, params: Parameters, matches: Callable[[str, str, str], bool]) -> str | None:
        for name, allowed in self.parameters.items():
            value = params.get(name, "")
            if not isinstance(value, str) or not any(matches(pattern, name, value) for pattern in allowed):
                return name
        return None


def _is_one_of(text: str, allowed: Sequence[str]) -> bool:
    return any(text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern for pattern in allowed)


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """Combined requirements of the policies that allow or restrict a request.

    Args:
        policies: The names of these policies.
        digest_required_by: The names of the policies that require a digest.
        signatures: The required signatures; each rule must be satisfied.
        private_networks: The private networks that any of the policies that allow it permits.
        is_public: Whether all of them declare the source public.
    """

    policies: tuple[str, ...] = ()
    digest_required_by: tuple[str, ...] = ()
    signatures: tuple[SignatureRule, ...] = ()
    private_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    is_public: bool = False

    def merge(self, other: PolicyDecision) -> PolicyDecision:
        """Combine the decisions for two sources of the same content: all requirements, and only common permissions."""
        return PolicyDecision(
            policies=tuple(dict.fromkeys((*self.policies, *other.policies))),
            digest_required_by=tuple(dict.fromkeys((*self.digest_required_by, *other.digest_required_by))),
            signatures=tuple(dict.fromkeys((*self.signatures, *other.signatures))),
            private_networks=tuple(network for network in self.private_networks if network in other.private_networks),
            is_public=self.is_public and other.is_public,
        )


def admit(
    policies: Iterable[Policy],
    *,
    resolver: str,
    uri: str,
    params: Parameters,
    namespace: str,
    spell: ParameterSpeller = spell_plainly,
) -> PolicyDecision:
    """Decide whether policies allow a fetch, before any connection opens.

    Args:
        policies: All policies.
        resolver: The resolver.
        uri: The address after the source map.
        params: The parameters of the reference.
        namespace: The namespace of the requester.
        spell: Returns the spellings of values of parameters.

    Raises:
        ResolutionError: ``Denied``: policies apply to the request, and none of them allows it.
    """
    applicable = [policy for policy in policies if policy.applies_to(resolver, namespace)]
    allowing = [policy for policy in applicable if policy.allows(uri, params, spell)]
    if applicable and not allowing:
        raise ResolutionError(Reason.DENIED, _format_denial(applicable, resolver, uri, namespace, params, spell))
    networks = dict.fromkeys(network for policy in allowing for network in policy.private_networks)
    restricting = [policy for policy in applicable if policy.restricts(uri, params, spell)]
    return PolicyDecision(
        policies=tuple(policy.name for policy in restricting),
        digest_required_by=tuple(policy.name for policy in restricting if policy.requires_digest),
        signatures=tuple(policy.signature for policy in restricting if policy.signature is not None),
        private_networks=tuple(networks),
        is_public=bool(allowing) and all(policy.is_public for policy in restricting),
    )


@dataclass(frozen=True, slots=True)
class RequestPolicies:
    """Policies of one request as they were at its start; they decide on every source that it reaches.

    Args:
        policies: All policies.
        resolver: The resolver.
        namespace: The namespace of the requester.
        uri: The requested address after the source map.
        params: The parameters that policies check.
        spell: Returns the spellings of values of parameters.
    """

    policies: tuple[Policy, ...]
    resolver: str
    namespace: str
    uri: str
    params: Parameters
    spell: ParameterSpeller = spell_plainly

    def admit(self) -> PolicyDecision:
        """Decide whether policies allow the requested address (`admit`)."""
        return self._admit(self.uri, self.params)

    def admit_source(self, uri: str) -> PolicyDecision:
        """Decide whether policies allow another address of the same request.

        Args:
            uri: The target of a redirect, the token server of a registry, or the next hub of a list.

        Raises:
            ResolutionError: ``Denied``; the message has the requested address, the other one and the policies.
        """
        try:
            return self._admit(uri, self.params)
        except ResolutionError as error:
            requested = canonicalize_source(self.uri)
            raise error.with_message(f"{requested} leads to another address: {error.message}") from None

    def admit_params(self, params: Parameters) -> PolicyDecision:
        """Decide whether policies allow the actual values of parameters.

        Args:
            params: The actual values, such as the target path of a symbolic link.

        Raises:
            ResolutionError: ``Denied``; the message has the parameters.
        """
        try:
            return self._admit(self.uri, {**self.params, **params})
        except ResolutionError as error:
            message = ", ".join(f"parameter {name!r} leads to {str(value)[:120]!r}" for name, value in params.items())
            raise error.with_message(f"{message}: {error.message}") from None

    def check_hop(self, url: str) -> None:
        """Refuse a URL that no policy allows, before a connection opens (`konverge_resolution.network.HopCheck`).

        Raises:
            ResolutionError: As `admit_source`.
        """
        self.admit_source(url)

    def _admit(self, uri: str, params: Parameters) -> PolicyDecision:
        return admit(
            self.policies,
            resolver=self.resolver,
            uri=uri,
            params=params,
            namespace=self.namespace,
            spell=self.spell,
        )


def _format_denial(
    policies: Sequence[Policy], resolver: str, uri: str, namespace: str, params: Parameters, spell: ParameterSpeller
) -> str:
    """Format the compared values and the names of the policies, but not what they allow."""
    asked = sorted((policy.name, policy.describe_denial(uri, params, spell)) for policy in policies)
    message = [f"{name} ({why})" for name, why in asked[:_MAX_LISTED]]
    message += [f"{len(asked) - _MAX_LISTED} more"] if len(asked) > _MAX_LISTED else []
    address = canonicalize_source(redact_source(uri))[:_MAX_TEXT] or "this"
    return (
        f"no policy allows namespace {namespace} to fetch {address} with resolver {resolver}; "
        f"its policies are {', '.join(message)}"
    )


def parse_networks(texts: Iterable[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Parse networks such as ``10.0.0.0/8``.

    Raises:
        ValueError: A text is not a network.
    """
    return tuple(parse_network(text) for text in texts)
