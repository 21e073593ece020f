"""Changes as text: one line an object, one line a field. Pure; colours are taken off again where no terminal is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from konverge.apply import HIDDEN
from konverge.cli.plurals import format_count
from konverge.component.dry_run import DryRunReport, FieldChange, FieldManagerInfo, ObjectChange
from konverge.operator.dry_run import OwnerDryRun

__all__ = ["format_change", "format_diff", "format_halts", "format_manager", "format_value"]

_LONGEST_VALUE = 120
_MOST_FIELDS = 100

_SIGNS = {"create": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red"), "release": ("<", "cyan")}
_WORDS = {
    "create": "would be created",
    "update": "would be updated",
    "delete": "would be deleted",
    "release": "would be released: it loses the reference to its owner",
}


def format_diff(owner: OwnerDryRun) -> Iterator[str]:
    """What a pass over the owner would change, and what it would not even come to; nothing if it would do nothing."""
    lines = list(_format_components(owner))
    if lines:
        where = f"{owner.namespace}/{owner.name}" if owner.namespace else owner.name
        yield click.style(f"{owner.kind} {where}", bold=True)
        yield from lines


def _format_components(owner: OwnerDryRun) -> Iterator[str]:
    told = [change for component in owner.components for change in component.changes]
    for component in owner.components:
        lines = [*(line for change in component.changes for line in format_change(change)), *format_halts(component)]
        if lines:
            yield f"  component {component.component}"
            yield from (f"    {line}" for line in lines)
    others = [change for change in owner.changes if change not in told]
    if others:
        yield "  outside of components"
        yield from (f"    {line}" for change in others for line in format_change(change))
    if owner.is_deleting:
        yield "  ! is being deleted: its components are left alone"


def format_change(change: ObjectChange) -> Iterator[str]:
    """One object and its fields."""
    sign, colour = _SIGNS[change.action]
    yield click.style(f"{sign} {change.identity}", fg=colour) + f"  {_WORDS[change.action]}"
    for field in change.fields[:_MOST_FIELDS]:
        yield f"    {_format_field(field, is_new=change.action == 'create')}"
    if len(change.fields) > _MOST_FIELDS:
        yield f"    … and {format_count(len(change.fields) - _MOST_FIELDS, 'field')} more"


def _format_field(field: FieldChange, *, is_new: bool) -> str:
    if is_new:
        return f"{field.path}: {format_value(field.after)}"
    match field.kind:
        case "added":
            what = click.style(f"+ {format_value(field.after)}", fg="green")
        case "removed":
            what = click.style(f"- {format_value(field.before)}", fg="red")
        case "claimed":
            what = f"{format_value(field.after)} stays, and becomes the component's"
        case "left":
            what = f"{format_value(field.after)} stays, and is the component's no more"
        case _ if field.before == field.after == HIDDEN:
            what = f"differs {HIDDEN}"
        case _:
            before, after = format_value(field.before), format_value(field.after)
            what = f"{click.style(before, fg='red')} → {click.style(after, fg='green')}"
    return f"{field.path}: {what}{_format_owners(field)}"


def _format_owners(field: FieldChange) -> str:
    if field.taken_from:
        told = ", ".join(format_manager(writer) for writer in field.taken_from)
        return click.style(f"  (taken over from {told})", fg="magenta")
    others = [format_manager(writer) for writer in field.owners if not writer.is_ours]
    return f"  (owned by {', '.join(others)})" if others else ""


def format_halts(component: DryRunReport) -> Iterator[str]:
    """Why some of the component is not compared, and what."""
    if component.error:
        yield click.style(f"! fails: {component.error}", fg="red")
    unmet = next((story for story in component.prerequisites if story.verdict == "NotMet"), None)
    if unmet is not None:
        yield f"! has not begun: {unmet.reason}"
    for story in component.resources:
        if story.outcome == "halts":
            yield f"! halts at {story.identity}: {story.reason}"
        if story.adoption:
            yield click.style(f"! adopts {story.identity}: {story.adoption}", fg="magenta")
    behind = [story.identity for story in component.resources if story.outcome == "not reached"]
    if behind:
        yield f"! not compared: {', '.join(behind)}"


def format_manager(writer: FieldManagerInfo) -> str:
    """A field manager, how it writes, and since when."""
    told = [writer.operation, *([f"through {writer.subresource}"] if writer.subresource else [])]
    return f"{writer.manager} ({', '.join([*told, *([f'since {writer.since}'] if writer.since else [])])})"


def format_value(value: Any) -> str:
    """A value on one line, and not a long one."""
    text = value if value == HIDDEN else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"
