"""Names of objects in options: ``NAMESPACE/NAME``."""

from __future__ import annotations

import click

from konverge._internal.kube import ObjectKey
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge.errors import ConfigurationError

__all__ = ["parse_namespaced_name"]


def parse_namespaced_name(option: str, text: str) -> ObjectKey:
    """Parse the value of an option.

    Args:
        option: The option, for messages.
        text: ``NAMESPACE/NAME``.

    Raises:
        click.UsageError: The value has another form.
        konverge.errors.ConfigurationError: The namespace or the name is invalid.
    """
    namespace, slash, name = text.partition("/")
    if not slash:
        raise click.UsageError(f"{option}: expected NAMESPACE/NAME, found {text!r}")
    errors = [
        *(f"namespace {namespace!r}: {error}" for error in validate_dns_label(namespace)),
        *(f"name {name!r}: {error}" for error in validate_dns_subdomain(name)),
    ]
    if errors:
        raise ConfigurationError(f"{option}: {'; '.join(errors)}")
    return ObjectKey(namespace, name)
