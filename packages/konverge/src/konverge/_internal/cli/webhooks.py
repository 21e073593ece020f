"""``konverge webhooks``: the webhook configurations of an operator, for its deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from konverge._internal.cli.crd import output_option
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.manifest_text import format_manifests
from konverge._internal.cli.namespaced_name import parse_namespaced_name
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.user_code import redirect_stdout_to_stderr
from konverge._internal.runtime.webhooks import ServiceReference, WebhookEndpoint
from konverge.errors import ConfigurationError

__all__ = ["webhooks"]

_MAX_BUNDLE_BYTES = 1024 * 1024


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.option("--service", required=True, metavar="NAMESPACE/NAME", help="Service in front of the webhook server.")
@click.option("--port", type=click.IntRange(1, 65535), default=443, show_default=True, help="Port of the Service.")
@click.option(
    "--ca-bundle",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Certificates that the API server trusts, in PEM (default: none; another tool must add them).",
)
@output_option
@verbose_option
def webhooks(file: str, service: str, port: int, ca_bundle: Path | None, output: Literal["yaml", "json"]) -> None:
    """Print the webhook configurations of the operator in FILE.py, for a run without --register-webhooks.

    The output includes the CustomResourceDefinitions whose versions the operator's handlers convert. Apply it with:
    konverge webhooks FILE.py --service NAMESPACE/NAME --ca-bundle ca.crt | kubectl apply --server-side -f -
    """
    key = parse_namespaced_name("--service", service)
    endpoint = WebhookEndpoint(
        ServiceReference(key.namespace, key.name, port), _read_bundle(ca_bundle) if ca_bundle else b""
    )
    with redirect_stdout_to_stderr():
        found = load_operator(parse_operator_reference(file)).registered.build_webhook_manifests(endpoint)
    if not found:
        raise ConfigurationError(f"{file}: expected an operator with webhook handlers, found none")
    click.echo(format_manifests(found, output), nl=False)


def _read_bundle(file: Path) -> bytes:
    """Read the PEM certificates of a file."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_BUNDLE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
    if len(content) > _MAX_BUNDLE_BYTES:
        raise ConfigurationError(
            f"{file}: expected PEM certificates of at most {_MAX_BUNDLE_BYTES >> 20} MiB, found more"
        )
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ConfigurationError(f"{file}: expected PEM certificates, found none")
    if b"PRIVATE KEY-----" in content:
        raise ConfigurationError(
            f"{file}: expected only PEM certificates, found a private key; remove the key from the file"
        )
    return content
