"""Remote definitions: references to them, resolvers that fetch them, and the checks around every resolver.

A `Reference` names a definition: a resolver and parameters. A `Resolver` fetches it from its kind of source. The same
engine surrounds every resolver. It checks policies before any connection opens, caches content by tenant, limits the
requests to each remote, and verifies the digest, the signature and the kind of the content. `ResolvedContent` has the
bytes and their exact source. Otherwise a `ResolutionError` has one of a closed set of reasons.

No credential is ever part of a message, an address, a log or an argument of a process.
"""

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import REASON_TRAITS, Fault, Reason, ReasonTraits
from konverge_resolution._internal.reference import Digest, Parameters, Reference, Value, build_request_name
from konverge_resolution._internal.resolved_content import (
    MAX_CONTENT_BYTES,
    AttachedSignature,
    Provenance,
    ResolvedContent,
)
from konverge_resolution._internal.resolver import (
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
