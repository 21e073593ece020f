"""Validation of a webhook's ``clientConfig``, for admission and for conversion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from konverge_cluster._internal.embedded.validation.field_errors import FieldError, field_invalid, field_required

__all__ = ["validate_client_config", "validate_review_versions"]

_FORM = "desired format: https://host[/path]"
_REVIEW_VERSIONS = ("v1", "v1beta1")


def validate_client_config(config: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of a ``clientConfig``."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield field_required(field, "exactly one of url or service is required")
    elif url is not None:
        yield from _validate_url(url, f"{field}.url")
    elif service is not None:
        for name in ("name", "namespace"):
            if not service.get(name):
                yield field_required(f"{field}.service.{name}", f"service {name} is required")
        path = service.get("path")
        if path and not path.startswith("/"):
            yield field_invalid(f"{field}.service.path", path, "must start with a '/'")


def _validate_url(url: str, field: str) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield field_required(field, f"url must be a valid URL: {error}; {_FORM}")
        return
    if parts.scheme != "https":
        yield field_invalid(field, parts.scheme, f"'https' is the only allowed URL scheme; {_FORM}")
    if not parts.netloc:
        yield field_invalid(field, parts.netloc, f"host must be specified; {_FORM}")
    if "@" in parts.netloc:
        yield field_invalid(field, "", "user information is not permitted in the URL")
    if parts.fragment:
        yield field_invalid(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield field_invalid(field, parts.query, "query parameters are not permitted in the URL")


def validate_review_versions(versions: Sequence[str], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of the review versions that a webhook accepts; the server sends ``v1``."""
    if not versions:
        yield field_required(field)
    elif not set(versions) & set(_REVIEW_VERSIONS):
        yield field_invalid(field, list(versions), f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
