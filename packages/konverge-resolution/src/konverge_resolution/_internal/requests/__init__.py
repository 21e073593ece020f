"""Resolution inside a cluster: a consumer creates a request, and an operator fulfils it.

A `ResolutionRequest` names a resolver and parameters and belongs to its consumer. It ends as resolved, with the
content, its digest and its source, or as failed, with one of the reasons of `konverge_resolution.Reason`. Only the
operator decides which process serves which resolver (`resolution_operator`). Neither consumers nor workers block during
a fetch. A `ResolutionPolicy` limits the fetches.

Invariants: a request ends by its deadline, counted from its creation, even if processes die; a finished request never
    starts again; its status is written at most three times; the fetch of a deleted request ends.
"""

from konverge_resolution._internal.requests.api_types import (
    REQUEST,
    ResolutionPolicy,
    ResolutionRequest,
)
from konverge_resolution._internal.requests.konverge_requests import build_request, parse_provenance, read_content
from konverge_resolution._internal.requests.resolution_operator import build_resolution_operator
from konverge_resolution._internal.requests.tekton_requests import TEKTON_REQUEST, TektonRequest

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
