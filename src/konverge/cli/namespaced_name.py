"""Objects as options name them: ``NAMESPACE/NAME``."""

from __future__ import annotations

import click

from konverge.errors import ConfigurationError
from konverge.kube import ObjectKey
from konverge.kube.names import dns_label_mistakes, dns_subdomain_mistakes

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
        *(f"namespace {namespace!r}: {mistake}" for mistake in dns_label_mistakes(namespace)),
        *(f"name {name!r}: {mistake}" for mistake in dns_subdomain_mistakes(name)),
    ]
    if mistakes:
        raise ConfigurationError(f"{option}: {'; '.join(mistakes)}")
    return ObjectKey(namespace, name)
