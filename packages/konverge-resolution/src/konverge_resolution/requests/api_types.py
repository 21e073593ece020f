"""konverge's own kinds: what asks for a definition and carries it (`ResolutionRequest`), and what limits it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from konverge.crd import CelRule, Metadata, PrintColumn, class_rules, custom_resource, find_definition
from konverge_resolution.reference import DIGEST_PATTERN
from konverge_resolution.requests.request_format import SUCCEEDED

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
"""The API group."""

CONTENT_KEY = "content"
"""The key of the content in a ConfigMap."""

_LABEL = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"

_Name = Annotated[str, Meta(max_length=63, pattern=_LABEL)]
_Key = Annotated[str, Meta(max_length=253)]
_Text = Annotated[str, Meta(max_length=65536)]
_Short = Annotated[str, Meta(max_length=4096)]


@class_rules(CelRule("self == oldSelf", "a request does not change: create another one"))
@dataclass(frozen=True)
class ResolutionRequestSpec:
    """What is asked for.

    Attributes:
        resolver: Who can get it; the operator's default when not given.
        params: What it is asked for.
        list_params: Parameters that are lists of texts.
        map_params: Parameters that are mappings of texts.
        digest: What the content has to be, as ``sha256:…`` or ``sha512:…``.
        service_account_name: For whom, of the request's namespace, where a resolver asks what its requester may read.
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
    """Where content came from (`konverge_resolution.Provenance`)."""

    uri: str = ""
    digest: dict[str, str] = field(default_factory=dict)
    entry_point: str = ""


@dataclass(frozen=True)
class ContentReference:
    """A ConfigMap of the request's namespace that has the content."""

    name: str
    key: str = CONTENT_KEY


@dataclass(frozen=True)
class ResolutionRequestStatus:
    """What came of it.

    Attributes:
        data: The content in base64.
        data_ref: Where the content is instead, when it is larger than what the operator wants to have in requests.
        data_digest: The content's digest, for whoever reads it: the object may have been changed since.
        source: Where the content came from.
        resolver: Who was asked.
        fetched_from: ``remote`` or ``cache``.
        attempts: How often the remote was asked.
        annotations: What else the resolver tells.
        policies: The policies that let it through.
        warnings: What policies that only warn have found.
        rewritten_from: The address before the source map changed it.
        policy_source: The address by which a policy names the place where the content was in the end, where that has
            another form than the source, or a redirect led there.
        deadline: Until when it has to end.
        started_at: When it was handed to its resolver; what is between its creation and this it has waited.
        finished_at: When it ended.
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
    """Asks for a definition, and carries it."""

    metadata: Metadata
    spec: ResolutionRequestSpec
    status: ResolutionRequestStatus = field(default_factory=ResolutionRequestStatus)


REQUEST = find_definition(ResolutionRequest).gvk
"""The kind of requests."""


@dataclass(frozen=True)
class KeylessIdentity:
    """Who may have signed without a key."""

    subject: str
    issuer: str


@dataclass(frozen=True)
class SignatureRequirement:
    """Who must have signed; one of them is enough.

    Attributes:
        mode: Refuse what nobody of them has signed, or only say so.
        keys: Public keys in PEM.
        identities: Of keyless signatures.
    """

    mode: Literal["enforce", "warn"] = "enforce"
    keys: Annotated[list[str], Meta(max_length=64)] = field(default_factory=list)
    identities: Annotated[list[KeylessIdentity], Meta(max_length=64)] = field(default_factory=list)


@dataclass(frozen=True)
class ResolutionPolicySpec:
    """What may be fetched, and what has to be proved of it (`konverge_resolution.policy.Policy`).

    Attributes:
        resolvers: Of which resolvers; all when empty.
        namespaces: For requests of which namespaces, ``team-*`` for all that begin so; all when empty.
        sources: The beginnings of addresses that may be fetched; all when empty.
        parameters: What a parameter may be, ``release-*`` for all that begin so.
        requires_digest: A reference has to name one content for ever, or to say its digest.
        signature: Who must have signed.
        private_networks: Private networks that may be connected to, such as ``10.0.0.0/8``.
        public: Everybody may have what was fetched for anybody.
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
    """Limits what requests may fetch."""

    metadata: Metadata
    spec: ResolutionPolicySpec


POLICY = find_definition(ResolutionPolicy).gvk
"""The kind of policies."""
