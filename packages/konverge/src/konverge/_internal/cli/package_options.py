"""Options of the commands that print the manifests of an operator's deployment."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypeVar

import click

__all__ = ["package_options"]

F = TypeVar("F", bound=Callable[..., Any])


def _parse_image(ctx: click.Context, parameter: click.Parameter, given: str | None) -> str:
    return given or f"konverge:{version('konverge')}"


def _drop_duplicates(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(given))


def package_options(*, namespace: str, watched: str) -> Callable[[F], F]:
    """Add ``image``, ``namespace``, ``make_namespace``, ``replicas`` and ``watched`` to a command.

    Args:
        namespace: The help text of the namespace.
        watched: The help text of the namespaces of the custom resources.
    """
    options = (
        click.option("--image", callback=_parse_image,
                     help="Image with konverge as its entry point (default: konverge:VERSION)."),
        click.option("--namespace", default="konverge-system", show_default=True, help=namespace),
        click.option("--make-namespace/--no-make-namespace", default=True, show_default=True,
                     help="Also print the Namespace."),
        click.option("--replicas", type=click.IntRange(1, 10), default=2, show_default=True,
                     help="Number of replicas; one is active."),
        click.option("--watch", "watched", multiple=True, metavar="NAMESPACE", callback=_drop_duplicates, help=watched),
    )  # fmt: skip

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
