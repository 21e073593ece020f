"""Remote definitions: named in one way, found by resolvers that anyone can add, and on record.

A `Reference` names a definition: a resolver and parameters. A `Resolver` gets it from its kind of source. Around every
resolver the same engine checks policy before anything is connected to, keeps what it got by tenant, asks each remote
with bounds of its own, and checks what came: its digest, its signature, its kind. The answer, `Resolved`, has the bytes
and the exact place they came from; the only other end is a `ResolutionError` with one of a closed set of reasons.

No credential is ever part of a message, an address, a log or an argument of a process.
"""

from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import FACTS, Facts, Fault, Reason
from konverge.resolution.reference import Digest, Parameters, Reference, Value, request_name
from konverge.resolution.resolver import (
    Addresses,
    ClusterReader,
    Fetch,
    Parameter,
    ParameterRole,
    Resolver,
    SecretReader,
    Services,
    Setting,
    Workspaces,
)
from konverge.resolution.result import MAX_CONTENT_BYTES, Attached, Resolved, Source

__all__ = [
    "FACTS",
    "MAX_CONTENT_BYTES",
    "Addresses",
    "Attached",
    "ClusterReader",
    "Digest",
    "Facts",
    "Fault",
    "Fetch",
    "Parameter",
    "ParameterRole",
    "Parameters",
    "Reason",
    "Reference",
    "ResolutionError",
    "Resolved",
    "Resolver",
    "SecretReader",
    "Services",
    "Setting",
    "Source",
    "Value",
    "Workspaces",
    "request_name",
]
