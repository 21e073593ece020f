"""``konverge box lock``: get what a box imports, and lock it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from konverge.box.running.imports import IMPORTED_KINDS, imports_in, lock_file_of
from konverge.cli.box import read_box
from konverge.cli.program import verbose_option
from konverge.cli.resolve import ended_by_reason, shared_options
from konverge.cli.resolve_flags import Flags
from konverge.cli.resolving import lock_roots
from konverge.resolution.content_folder import content_folder_of

__all__ = ["box_lock"]

_DERIVED = ("lock_file", "content")


@click.command("lock")
@click.argument("file", metavar="FILE.yaml", type=click.Path(path_type=Path))
@verbose_option
@click.pass_context
def box_lock(ctx: click.Context, /, file: Path, **given: Any) -> None:
    """Get what a box imports, and write the lock file beside it.

    FILE.lock.yaml and the folder FILE.lock.yaml.d belong to the box: commit them. Lint, run and package take what is in
    there and ask no network. What is locked stays as it is; --update locks what is there now.
    """
    lock_file = lock_file_of(file)
    flags = Flags.of(ctx, {**given, "lock_file": lock_file, "content": content_folder_of(lock_file)})
    options = replace(flags.setup.options, kinds=IMPORTED_KINDS)
    flags = replace(flags, setup=replace(flags.setup, options=options))
    roots = imports_in(read_box(file), str(file))
    if not roots:
        click.echo(f"{file} imports nothing", err=True)
        return
    with ended_by_reason(ctx):
        asyncio.run(lock_roots(flags, roots))


box_lock.params += [option for option in shared_options() if option.name not in _DERIVED]
