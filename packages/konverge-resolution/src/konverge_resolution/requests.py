"""Requests for definitions as custom resources, and the operator that serves them."""

from __future__ import annotations

from konverge_resolution._internal.requests import (
    REQUEST,
    TEKTON_REQUEST,
    ResolutionPolicy,
    ResolutionRequest,
    TektonRequest,
    build_request,
    build_resolution_operator,
    parse_provenance,
    read_content,
)

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
