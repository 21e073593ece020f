"""Resolution inside a cluster: who needs a definition creates a request, and some process fulfils it.

A `ResolutionRequest` names a resolver and parameters, belongs to whoever needs it, and ends as resolved, with the
content, its digest and its source, or as failed, with one of the reasons of `konverge_resolution.Reason`. Who serves
which resolver is nobody's business but the operator's (`resolution_operator`). No consumer and no worker waits while
something is fetched. A `ResolutionPolicy` limits what may be.

Invariants: a request ends by its deadline, which counts from its creation, whoever dies meanwhile; it is never begun
again once it has ended; its status is written at most three times; a request that is gone ends its fetch.
"""

from konverge_resolution.requests.api_types import (
    REQUEST,
    ResolutionPolicy,
    ResolutionRequest,
)
from konverge_resolution.requests.konverge_requests import build_request, parse_provenance, read_content
from konverge_resolution.requests.resolution_operator import build_resolution_operator
from konverge_resolution.requests.tekton_requests import TEKTON_REQUEST, TektonRequest

__all__ = [
    "REQUEST",
    "TEKTON_REQUEST",
    "ResolutionPolicy",
    "ResolutionRequest",
    "TektonRequest",
    "build_request",
    "build_resolution_operator",
    "parse_provenance",
    "read_content",
]
