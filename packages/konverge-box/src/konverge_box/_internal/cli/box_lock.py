"""``konverge box lock``: fetch the imports of a box, and lock them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from konverge._internal.cli.main import verbose_option
from konverge_box._internal.cli.box import read_box
from konverge_box._internal.runtime.locked_imports import IMPORTED_KINDS, build_lock_path, list_imports
from konverge_resolution._internal.cli.resolve import build_lock_options, exit_with_reason
from konverge_resolution._internal.cli.resolve_actions import lock_roots
from konverge_resolution._internal.cli.resolve_flags import ResolveFlags
from konverge_resolution._internal.content_store import find_content_folder

__all__ = ["box_lock"]

# The lock file and its content have the name of the box; the imports of a box must not be on one machine only.
_OMITTED = ("lock_file", "content", "directory")


@click.command("lock")
@click.argument("file", metavar="FILE.yaml", type=click.Path(path_type=Path))
@verbose_option
@click.pass_context
def box_lock(ctx: click.Context, /, file: Path, **given: Any) -> None:
    """Fetch the imports of a box and write its lock file.

    The lock file FILE.lock.yaml and the directory FILE.lock.yaml.d are part of the box: commit them. The commands lint,
    run and package read imports only from there. Locked entries do not change without --update.
    """
    lock_file = build_lock_path(file)
    flags = ResolveFlags.of(ctx, {**given, "lock_file": lock_file, "content": find_content_folder(lock_file)})
    options = replace(flags.setup.options, kinds=IMPORTED_KINDS)
    flags = replace(flags, setup=replace(flags.setup, options=options))
    roots = list_imports(read_box(file), str(file))
    if not roots:
        click.echo(f"{file}: nothing to lock: the box has no imports", err=True)
        return
    with exit_with_reason(ctx):
        asyncio.run(lock_roots(flags, roots))


box_lock.params += [option for option in build_lock_options() if option.name not in _OMITTED]
