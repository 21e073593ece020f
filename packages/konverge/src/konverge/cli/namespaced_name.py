"""Objects as options name them: ``NAMESPACE/NAME``."""

from __future__ import annotations

import click

from konverge.errors import ConfigurationError
from konverge.kube import ObjectKey
from konverge.kube.name_validation import validate_dns_label, validate_dns_subdomain

__all__ = ["parse_namespaced_name"]


def parse_namespaced_name(option: str, text: str) -> ObjectKey:
    """Read what an option was given.

    Args:
        option: The option, for messages.
        text: ``NAMESPACE/NAME``.

    Raises:
        click.UsageError: It has another form.
        konverge.errors.ConfigurationError: One of the two is no name.
    """
    namespace, slash, name = text.partition("/")
    if not slash:
        raise click.UsageError(f"{option}: expected NAMESPACE/NAME, found {text!r}")
    mistakes = [
        *(f"namespace {namespace!r}: {mistake}" for mistake in validate_dns_label(namespace)),
        *(f"name {name!r}: {mistake}" for mistake in validate_dns_subdomain(name)),
    ]
    if mistakes:
        raise ConfigurationError(f"{option}: {'; '.join(mistakes)}")
    return ObjectKey(namespace, name)
