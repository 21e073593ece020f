"""Who may fetch what from where, and what has to be proved of it: policies as values, and what they come to. Pure.

Without a policy for a resolver in a namespace, everything may be fetched there that the resolver's own configuration
allows. As soon as there is one, a source has to be named by one of them; and what *each* policy that names it asks for
(a digest, a signature) has to be there. Sources are named by prefixes that end where a part of an address ends. They
are no regular expressions: a pattern that is matched in part was a way around such a rule (CVE-2026-25542).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from urllib.parse import SplitResult, unquote, urlsplit

from konverge_resolution.errors import ResolutionError
from konverge_resolution.network import parse_network
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Parameters, redact_source
from konverge_resolution.resolver_registry import list_resolvers

__all__ = [
    "Policy",
    "PolicyDecision",
    "RequestPolicies",
    "SignatureMode",
    "SignatureRule",
    "SourcePrefix",
    "admit",
    "parse_networks",
]

_MAX_LISTED = 5
_MAX_TEXT = 400
_CLUSTER_SCHEME = "cluster"
"""The scheme of objects, whose kinds are found however they are written, and whose names have small letters alone."""
_DEFAULT_PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418}


class SignatureMode(StrEnum):
    """What becomes of content whose signature does not verify."""

    ENFORCE = "enforce"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class SignatureRule:
    """Who must have signed the content; one of them is enough.

    Args:
        mode: What follows when nobody has.
        keys: Public keys in PEM.
        identities: Of keyless signatures: subject and issuer.
    """

    mode: SignatureMode = SignatureMode.ENFORCE
    keys: tuple[str, ...] = ()
    identities: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SourcePrefix:
    """The beginning of addresses; made by `parse`.

    Args:
        scheme: In full, for example ``git+https``.
        host: In lower case; with ``*.`` before it, all hosts below it.
        port: As a number; None where the scheme has no default and none was written.
        segments: The first parts of the path.
    """

    scheme: str
    host: str
    port: int | None
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> SourcePrefix:
        """Read ``https://example.com/team`` or ``https://*.example.com``.

        Raises:
            ValueError: It is no address, or one that can be written in several ways.
        """
        scheme, host, port, segments = _split_uri(text)
        if "*" in host.removeprefix("*.") or any("*" in segment for segment in segments):
            raise ValueError(f"expected no * but for *. before a host, found {text[:120]!r}")
        return cls(scheme, host, port, segments)

    def matches(self, uri: str) -> bool:
        """Tell whether an address begins with it; one that can be read in two ways does not."""
        try:
            scheme, host, port, segments = _split_uri(uri)
        except ValueError:
            return False
        fits = host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host
        return (scheme, port) == (self.scheme, self.port) and fits and segments[: len(self.segments)] == self.segments


def _split_uri(uri: str) -> tuple[str, str, int | None, tuple[str, ...]]:
    """Scheme, host, port and path of an address.

    Raises:
        ValueError: It is none, has a user, or its path can be written in another way.
    """
    found: SplitResult = urlsplit(uri)
    path = found.path.lower() if found.scheme == _CLUSTER_SCHEME else found.path
    if not found.scheme or not found.hostname or found.username is not None or any(not 32 < ord(c) < 127 for c in uri):
        raise ValueError(f"expected an address such as https://example.com/team, found {uri[:120]!r}")
    segments = tuple(segment for segment in path.split("/") if segment)
    if any(_is_ambiguous(unquote(segment)) for segment in segments):
        raise ValueError(f"expected an address without . and .. in its path, found {uri[:120]!r}")
    port = found.port if found.port is not None else _DEFAULT_PORTS.get(found.scheme.rpartition("+")[2])
    return found.scheme, found.hostname.rstrip("."), port, segments


def _is_ambiguous(segment: str) -> bool:
    """Tell whether some server takes a part of a path for several, or for the way up (``..;a`` is ``..`` to some)."""
    return "/" in segment or "\\" in segment or segment.partition(";")[0] in (".", "..")


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy.

    Args:
        name: What messages call it.
        resolvers: Of which resolvers; empty for all.
        namespaces: For requests of which namespaces, ``team-*`` for all that begin so; empty for all.
        sources: What may be fetched; empty for everything.
        parameters: What a parameter may be, ``release-*`` for all that begin so; one that is not here may be anything.
        requires_digest: The reference has to have a digest, or parameters that name one content for ever.
        signature: Who must have signed; None for nobody.
        private_networks: The private networks that may be connected to.
        is_public: Everybody may have what was fetched for anybody: the cache need not keep tenants apart.
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
        """Tell whether it is about such requests at all."""
        return (not self.resolvers or resolver in self.resolvers) and _is_one_of(namespace, self.namespaces)

    def find_unknown_resolver(self, known: Collection[str]) -> str:
        """What is wrong with a policy for a resolver that does not exist: as it stands, it would limit nothing.

        Args:
            known: The resolvers that there are.

        Returns:
            What was expected and what was found; empty for nothing.
        """
        unknown = next((each for each in sorted(self.resolvers) if each not in known), None)
        if unknown is None:
            return ""
        return f"expected names of resolvers, found {unknown[:80]!r}; {list_resolvers(unknown, known)}"

    def allows(self, uri: str, params: Parameters) -> bool:
        """Tell whether it lets this be fetched."""
        return not self.describe_denial(uri, params)

    def describe_denial(self, uri: str, params: Parameters) -> str:
        """Why it does not let this be fetched; empty when it does. What it allows instead is not said."""
        if self.sources and not any(prefix.matches(uri) for prefix in self.sources):
            return "it names other sources"
        for name, allowed in self.parameters.items():
            value = params.get(name, "")
            if not isinstance(value, str) or not _is_one_of(value, allowed):
                return f"it allows other values of parameter {name[:80]!r}"
        return ""


def _is_one_of(text: str, allowed: Sequence[str]) -> bool:
    if not allowed:
        return True
    return any(text.startswith(each[:-1]) if each.endswith("*") else text == each for each in allowed)


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What the policies that let a request through ask for.

    Args:
        policies: Their names.
        digest_required_by: The names of those that ask for a digest.
        signatures: Each has to be met by itself.
        private_networks: What may be connected to, by any of them.
        is_public: All of them say so.
    """

    policies: tuple[str, ...] = ()
    digest_required_by: tuple[str, ...] = ()
    signatures: tuple[SignatureRule, ...] = ()
    private_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    is_public: bool = False

    def merge(self, other: PolicyDecision) -> PolicyDecision:
        """Both, for content that went by two places: what either asks for, and what both allow."""
        return PolicyDecision(
            policies=tuple(dict.fromkeys((*self.policies, *other.policies))),
            digest_required_by=tuple(dict.fromkeys((*self.digest_required_by, *other.digest_required_by))),
            signatures=tuple(dict.fromkeys((*self.signatures, *other.signatures))),
            private_networks=tuple(each for each in self.private_networks if each in other.private_networks),
            is_public=self.is_public and other.is_public,
        )


def admit(policies: Iterable[Policy], *, resolver: str, uri: str, params: Parameters, namespace: str) -> PolicyDecision:
    """Decide whether something may be fetched, before anything is connected to.

    Args:
        policies: All there are.
        resolver: Who would fetch it.
        uri: From where, after the source map.
        params: What it would be asked for.
        namespace: The requester's.

    Raises:
        ResolutionError: ``Denied``: there are policies for such requests, and none of them names this.
    """
    concerned = [policy for policy in policies if policy.applies_to(resolver, namespace)]
    naming = [policy for policy in concerned if policy.allows(uri, params)]
    if concerned and not naming:
        raise ResolutionError(Reason.DENIED, _format_denial(concerned, resolver, uri, params, namespace))
    networks = dict.fromkeys(network for policy in naming for network in policy.private_networks)
    return PolicyDecision(
        policies=tuple(policy.name for policy in naming),
        digest_required_by=tuple(policy.name for policy in naming if policy.requires_digest),
        signatures=tuple(policy.signature for policy in naming if policy.signature is not None),
        private_networks=tuple(networks),
        is_public=bool(naming) and all(policy.is_public for policy in naming),
    )


@dataclass(frozen=True, slots=True)
class RequestPolicies:
    """The policies for one request, as they were when it began: they decide about every place that it leads to.

    Args:
        policies: All there are.
        resolver: Who fetches.
        namespace: The requester's.
        uri: What is asked for, after the source map.
        params: The parameters that policies judge.
    """

    policies: tuple[Policy, ...]
    resolver: str
    namespace: str
    uri: str
    params: Parameters

    def admit(self) -> PolicyDecision:
        """Decide whether what is asked for may be fetched (`admit`)."""
        return self._admit(self.uri, self.params)

    def admit_source(self, uri: str) -> PolicyDecision:
        """Decide whether a request may go on to another place.

        Args:
            uri: Where a redirect leads, or what else has to be asked: tokens of a registry, the next hub of a list.

        Raises:
            ResolutionError: ``Denied``; the message has what was asked for, the place and the policies.
        """
        try:
            return self._admit(uri, self.params)
        except ResolutionError as error:
            raise error.with_message(f"{self.uri} leads to another place: {error.message}") from None

    def admit_params(self, params: Parameters) -> PolicyDecision:
        """Decide whether something may be fetched by which a parameter has turned out to stand.

        Args:
            params: Those parameters, such as the path to which a symbolic link leads.

        Raises:
            ResolutionError: ``Denied``; the message has the parameters.
        """
        try:
            return self._admit(self.uri, {**self.params, **params})
        except ResolutionError as error:
            message = ", ".join(f"parameter {name!r} leads to {str(value)[:120]!r}" for name, value in params.items())
            raise error.with_message(f"{message}: {error.message}") from None

    def check_hop(self, url: str) -> None:
        """Refuse what no policy allows, before it is connected to (`konverge_resolution.network.HopCheck`).

        Raises:
            ResolutionError: As `admit_source`.
        """
        self.admit_source(url)

    def _admit(self, uri: str, params: Parameters) -> PolicyDecision:
        return admit(self.policies, resolver=self.resolver, uri=uri, params=params, namespace=self.namespace)


def _format_denial(policies: Sequence[Policy], resolver: str, uri: str, params: Parameters, namespace: str) -> str:
    """Whoever reads this may know what was compared, and with which policies; what these allow is not said."""
    asked = sorted((policy.name, policy.describe_denial(uri, params)) for policy in policies)
    message = [f"{name} ({why})" for name, why in asked[:_MAX_LISTED]]
    message += [f"{len(asked) - _MAX_LISTED} more"] if len(asked) > _MAX_LISTED else []
    shown = redact_source(uri)[:_MAX_TEXT] or "this"
    return (
        f"no policy lets namespace {namespace} fetch {shown} by resolver {resolver}; "
        f"those for it are: {', '.join(message)}"
    )


def parse_networks(texts: Iterable[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Read networks such as ``10.0.0.0/8``.

    Raises:
        ValueError: One is none.
    """
    return tuple(parse_network(text) for text in texts)
