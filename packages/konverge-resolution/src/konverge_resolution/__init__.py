"""Remote definitions: named in one way, found by resolvers that anyone can add, and on record.

A `Reference` names a definition: a resolver and parameters. A `Resolver` gets it from its kind of source. Around every
resolver the same engine checks policy before anything is connected to, keeps what it got by tenant, asks each remote
with bounds of its own, and checks what came: its digest, its signature, its kind. The answer, `ResolvedContent`, has
the bytes
and the exact place they came from; the only other end is a `ResolutionError` with one of a closed set of reasons.

No credential is ever part of a message, an address, a log or an argument of a process.
"""

from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import REASON_TRAITS, Fault, Reason, ReasonTraits
from konverge_resolution.reference import Digest, Parameters, Reference, Value, build_request_name
from konverge_resolution.resolved_content import MAX_CONTENT_BYTES, AttachedSignature, Provenance, ResolvedContent
from konverge_resolution.resolver import (
    AddressResolver,
    ClusterReader,
    FetchRequest,
    Parameter,
    ParameterRole,
    Resolver,
    SecretReader,
    Services,
    Setting,
    Workspaces,
)

__all__ = [
    "MAX_CONTENT_BYTES",
    "REASON_TRAITS",
    "AddressResolver",
    "AttachedSignature",
    "ClusterReader",
    "Digest",
    "Fault",
    "FetchRequest",
    "Parameter",
    "ParameterRole",
    "Parameters",
    "Provenance",
    "Reason",
    "ReasonTraits",
    "Reference",
    "ResolutionError",
    "ResolvedContent",
    "Resolver",
    "SecretReader",
    "Services",
    "Setting",
    "Value",
    "Workspaces",
    "build_request_name",
]
