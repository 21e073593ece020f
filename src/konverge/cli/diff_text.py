"""Changes as text: one line an object, one line a field. Pure; colours are taken off again where no terminal is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from konverge.apply import HIDDEN
from konverge.cli.counted import counted
from konverge.component.rehearsal import Change, FieldChange, Rehearsal, Writer
from konverge.operator.rehearsing import OwnerRehearsal

__all__ = ["change_lines", "diff_lines", "halting_lines", "value_text", "writer_text"]

_LONGEST_VALUE = 120
_MOST_FIELDS = 100

_SIGNS = {"create": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red"), "release": ("<", "cyan")}
_WORDS = {
    "create": "would be created",
    "update": "would be updated",
    "delete": "would be deleted",
    "release": "would be released: it loses the reference to its owner",
}


def diff_lines(owner: OwnerRehearsal) -> Iterator[str]:
    """What a pass over the owner would change, and what it would not even come to; nothing if it would do nothing."""
    lines = list(_lines(owner))
    if lines:
        where = f"{owner.namespace}/{owner.name}" if owner.namespace else owner.name
        yield click.style(f"{owner.kind} {where}", bold=True)
        yield from lines


def _lines(owner: OwnerRehearsal) -> Iterator[str]:
    told = [change for component in owner.components for change in component.changes]
    for component in owner.components:
        lines = [*(line for change in component.changes for line in change_lines(change)), *halting_lines(component)]
        if lines:
            yield f"  component {component.component}"
            yield from (f"    {line}" for line in lines)
    others = [change for change in owner.changes if change not in told]
    if others:
        yield "  outside of components"
        yield from (f"    {line}" for change in others for line in change_lines(change))
    if owner.is_deleting:
        yield "  ! is being deleted: its components are left alone"


def change_lines(change: Change) -> Iterator[str]:
    """One object and its fields."""
    sign, colour = _SIGNS[change.action]
    yield click.style(f"{sign} {change.identity}", fg=colour) + f"  {_WORDS[change.action]}"
    for field in change.fields[:_MOST_FIELDS]:
        yield f"    {_field_line(field, is_new=change.action == 'create')}"
    if len(change.fields) > _MOST_FIELDS:
        yield f"    … and {counted(len(change.fields) - _MOST_FIELDS, 'field')} more"


def _field_line(field: FieldChange, *, is_new: bool) -> str:
    if is_new:
        return f"{field.path}: {value_text(field.after)}"
    match field.kind:
        case "added":
            what = click.style(f"+ {value_text(field.after)}", fg="green")
        case "removed":
            what = click.style(f"- {value_text(field.before)}", fg="red")
        case "claimed":
            what = f"{value_text(field.after)} stays, and becomes the component's"
        case "left":
            what = f"{value_text(field.after)} stays, and is the component's no more"
        case _ if field.before == field.after == HIDDEN:
            what = f"differs {HIDDEN}"
        case _:
            before, after = value_text(field.before), value_text(field.after)
            what = f"{click.style(before, fg='red')} → {click.style(after, fg='green')}"
    return f"{field.path}: {what}{_owners(field)}"


def _owners(field: FieldChange) -> str:
    if field.taken_from:
        told = ", ".join(writer_text(writer) for writer in field.taken_from)
        return click.style(f"  (taken over from {told})", fg="magenta")
    others = [writer_text(writer) for writer in field.owners if not writer.is_ours]
    return f"  (owned by {', '.join(others)})" if others else ""


def halting_lines(component: Rehearsal) -> Iterator[str]:
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


def writer_text(writer: Writer) -> str:
    """A field manager, how it writes, and since when."""
    told = [writer.operation, *([f"through {writer.subresource}"] if writer.subresource else [])]
    return f"{writer.manager} ({', '.join([*told, *([f'since {writer.since}'] if writer.since else [])])})"


def value_text(value: Any) -> str:
    """A value on one line, and not a long one."""
    text = value if value == HIDDEN else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"
