"""``konverge version``: print the installed version."""

from __future__ import annotations

from importlib.metadata import version as version_of

import click

__all__ = ["version"]


@click.command()
def version() -> None:
    """Print the version of konverge."""
    click.echo(version_of("konverge"))
