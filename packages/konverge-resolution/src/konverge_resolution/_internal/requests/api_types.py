"""Custom resources of konverge: requests for definitions (`ResolutionRequest`) and limits (`ResolutionPolicy`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from konverge._internal.crd import CelRule, Metadata, PrintColumn, class_rules, custom_resource, find_definition
from konverge_resolution._internal.reference import DIGEST_PATTERN
from konverge_resolution._internal.requests.request_format import SUCCEEDED

__all__ = [
    "CONTENT_KEY",
    "GROUP",
    "POLICY",
    "REQUEST",
    "ResolutionPolicy",
    "ResolutionPolicySpec",
    "ResolutionRequest",
    "ResolutionRequestSpec",
    "ResolutionRequestStatus",
]

GROUP = "resolution.konverge.dev"
"""API group of both kinds."""

CONTENT_KEY = "content"
"""Key of the content in a ConfigMap."""

_LABEL = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"

_Name = Annotated[str, Meta(max_length=63, pattern=_LABEL)]
_Key = Annotated[str, Meta(max_length=253)]
_Text = Annotated[str, Meta(max_length=65536)]
_Short = Annotated[str, Meta(max_length=4096)]


@class_rules(CelRule("self == oldSelf", "a request is immutable; create another one"))
@dataclass(frozen=True)
class ResolutionRequestSpec:
    """Definition that a request asks for.

    Attributes:
        resolver: The resolver; the operator's default if empty.
        params: The parameters for the resolver.
        list_params: Parameters that are lists of texts.
        map_params: Parameters that are mappings of texts.
        digest: The expected digest of the content, as ``sha256:…`` or ``sha512:…``.
        service_account_name: The ServiceAccount of the request's namespace whose read access a resolver may check.
    """

    resolver: _Name = ""
    params: Annotated[dict[_Key, _Text], Meta(max_length=64)] = field(default_factory=dict)
    list_params: Annotated[dict[_Key, Annotated[list[_Short], Meta(max_length=64)]], Meta(max_length=16)] = field(
        default_factory=dict
    )
    map_params: Annotated[dict[_Key, Annotated[dict[_Key, _Short], Meta(max_length=64)]], Meta(max_length=16)] = field(
        default_factory=dict
    )
    digest: Annotated[str, Meta(max_length=135, pattern=DIGEST_PATTERN)] | None = None
    service_account_name: Annotated[str, Meta(max_length=253)] = "default"


@dataclass(frozen=True)
class SourceRecord:
    """Source of content in a status; the fields of `konverge_resolution.Provenance`."""

    uri: str = ""
    digest: dict[str, str] = field(default_factory=dict)
    entry_point: str = ""


@dataclass(frozen=True)
class ContentReference:
    """ConfigMap with the content, in the namespace of the request."""

    name: str
    key: str = CONTENT_KEY


@dataclass(frozen=True)
class ResolutionRequestStatus:
    """Result of a request.

    Attributes:
        data: The content in base64.
        data_ref: The location of content that is larger than the operator's limit for requests.
        data_digest: The digest of the content for consumers, since the object may have been changed afterwards.
        source: The source of the content.
        resolver: The resolver that was used.
        fetched_from: ``remote`` or ``cache``.
        attempts: The number of calls of the remote.
        annotations: Further information of the resolver.
        policies: The policies that allowed it.
        warnings: The findings of policies that only warn.
        rewritten_from: The address before the source map changed it.
        policy_source: The address by which a policy names the actual source of the content, if it differs in form from
            the recorded one, or after a redirect.
        deadline: The time by which the request ends.
        started_at: The time when its resolver received it; it waited between its creation and this time.
        finished_at: The time when it ended.
    """

    data: str | None = None
    data_ref: ContentReference | None = None
    data_digest: str | None = None
    source: SourceRecord | None = None
    resolver: str | None = None
    fetched_from: Literal["remote", "cache"] | None = None
    attempts: int | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    policies: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rewritten_from: str | None = None
    policy_source: str | None = None
    deadline: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


_COLUMNS = (
    PrintColumn("Resolver", "string", ".spec.resolver"),
    PrintColumn("Succeeded", "string", f".status.conditions[?(@.type=='{SUCCEEDED}')].status"),
    PrintColumn("Reason", "string", f".status.conditions[?(@.type=='{SUCCEEDED}')].reason"),
    PrintColumn("Age", "date", ".metadata.creationTimestamp"),
)


@custom_resource(group=GROUP, version="v1alpha1", print_columns=_COLUMNS)
@dataclass(frozen=True)
class ResolutionRequest:
    """Request for a definition; it carries the result."""

    metadata: Metadata
    spec: ResolutionRequestSpec
    status: ResolutionRequestStatus = field(default_factory=ResolutionRequestStatus)


REQUEST = find_definition(ResolutionRequest).gvk
"""Kind of konverge's requests."""


@dataclass(frozen=True)
class KeylessIdentity:
    """Identity of a signer without a key."""

    subject: str
    issuer: str


@dataclass(frozen=True)
class AttestationRequirement:
    """Statement about an image that must be signed, in place of the content.

    Attributes:
        predicate_type: The type of the statement, for example ``https://slsa.dev/provenance/v1``.
        builders: The accepted builders of a provenance statement; all if empty.
    """

    predicate_type: str
    builders: Annotated[list[str], Meta(max_length=64)] = field(default_factory=list)


@dataclass(frozen=True)
class SignatureRequirement:
    """Possible signers; at least one of them must have signed.

    Attributes:
        mode: Refuse content without a valid signature, or only warn.
        keys: Public keys in PEM.
        identities: Identities of keyless signatures.
        attestation: The statement about an image that must be signed; the content itself if absent.
    """

    mode: Literal["enforce", "warn"] = "enforce"
    keys: Annotated[list[str], Meta(max_length=64)] = field(default_factory=list)
    identities: Annotated[list[KeylessIdentity], Meta(max_length=64)] = field(default_factory=list)
    attestation: AttestationRequirement | None = None


@dataclass(frozen=True)
class ResolutionPolicySpec:
    """Allowed sources, and the proofs that are required of their content (`policy.Policy`).

    Attributes:
        resolvers: The resolvers that the policy applies to; all if empty.
        namespaces: The namespaces that it applies to, ``team-*`` for a prefix; all if empty.
        sources: Prefixes of allowed addresses; all if empty.
        parameters: Allowed values by parameter, ``release-*`` for a prefix.
        requires_digest: Require a digest, or parameters with a permanent version.
        signature: The required signature.
        private_networks: Permitted private networks, such as ``10.0.0.0/8``.
        public: Share cached content between all tenants.
    """

    resolvers: Annotated[list[str], Meta(max_length=256)] = field(default_factory=list)
    namespaces: Annotated[list[str], Meta(max_length=1024)] = field(default_factory=list)
    sources: Annotated[list[str], Meta(max_length=1024)] = field(default_factory=list)
    parameters: dict[str, list[str]] = field(default_factory=dict)
    requires_digest: bool = False
    signature: SignatureRequirement | None = None
    private_networks: Annotated[list[str], Meta(max_length=256)] = field(default_factory=list)
    public: bool = False


@custom_resource(group=GROUP, version="v1alpha1", plural="resolutionpolicies", scope="Cluster")
@dataclass(frozen=True)
class ResolutionPolicy:
    """Policy that limits the fetches of requests."""

    metadata: Metadata
    spec: ResolutionPolicySpec


POLICY = find_definition(ResolutionPolicy).gvk
"""Kind of policies in the cluster."""
