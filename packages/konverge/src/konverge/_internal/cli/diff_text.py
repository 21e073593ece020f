"""Changes as text: one line for each object and each field. Pure; click removes the colors without a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from konverge._internal.apply import HIDDEN
from konverge._internal.cli.plurals import format_count
from konverge._internal.component.dry_run import DryRunReport, FieldChange, FieldManagerInfo, ObjectChange
from konverge._internal.operator.dry_run import OwnerDryRun

__all__ = ["format_change", "format_diff", "format_halts", "format_manager", "format_status_change", "format_value"]

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
    """Yield the changes of a reconcile of the owner and the parts that it would not reach; nothing without changes."""
    lines = list(_format_components(owner))
    if lines:
        where = f"{owner.namespace}/{owner.name}" if owner.namespace else owner.name
        yield click.style(f"{owner.kind} {where}", bold=True)
        yield from lines


def _format_components(owner: OwnerDryRun) -> Iterator[str]:
    component_changes = [change for component in owner.components for change in component.changes]
    for component in owner.components:
        lines = [*(line for change in component.changes for line in format_change(change)), *format_halts(component)]
        if lines:
            yield f"  component {component.component}"
            yield from (f"    {line}" for line in lines)
    others = [change for change in owner.changes if change not in component_changes]
    if others:
        yield "  outside of components"
        yield from (f"    {line}" for change in others for line in format_change(change))
    if owner.status:
        yield "  status"
        yield from (f"    {format_status_change(field)}" for field in owner.status[:_MOST_FIELDS])
    if owner.is_deleting:
        yield "  ! is being deleted: its components are not reconciled"


def format_change(change: ObjectChange) -> Iterator[str]:
    """Yield the line of one object and the lines of its fields."""
    sign, colour = _SIGNS[change.action]
    yield click.style(f"{sign} {change.identity}", fg=colour) + f"  {_WORDS[change.action]}"
    for field in change.fields[:_MOST_FIELDS]:
        yield f"    {_format_field(field, is_new=change.action == 'create')}"
    if len(change.fields) > _MOST_FIELDS:
        yield f"    … and {format_count(len(change.fields) - _MOST_FIELDS, 'field')} more"


def format_status_change(field: FieldChange) -> str:
    """Return the line of one field of the owner's status."""
    return _format_field(field, is_new=False)


def _format_field(field: FieldChange, *, is_new: bool) -> str:
    if is_new:
        return f"{field.path}: {format_value(field.after)}"
    match field.kind:
        case "added":
            what = click.style(f"+ {format_value(field.after)}", fg="green")
        case "removed":
            what = click.style(f"- {format_value(field.before)}", fg="red")
        case "claimed":
            what = f"{format_value(field.after)} is unchanged and becomes owned by the component"
        case "left":
            what = f"{format_value(field.after)} is unchanged and no longer owned by the component"
        case _ if field.before == field.after == HIDDEN:
            what = f"differs {HIDDEN}"
        case _:
            before, after = format_value(field.before), format_value(field.after)
            what = f"{click.style(before, fg='red')} → {click.style(after, fg='green')}"
    return f"{field.path}: {what}{_format_owners(field)}"


def _format_owners(field: FieldChange) -> str:
    if field.taken_from:
        managers = ", ".join(format_manager(writer) for writer in field.taken_from)
        return click.style(f"  (taken over from {managers})", fg="magenta")
    others = [format_manager(writer) for writer in field.owners if not writer.is_ours]
    return f"  (owned by {', '.join(others)})" if others else ""


def format_halts(component: DryRunReport) -> Iterator[str]:
    """Yield the reasons why a part of the component is not compared, and that part."""
    if component.error:
        yield click.style(f"! fails: {component.error}", fg="red")
    unmet = next((report for report in component.prerequisites if report.verdict == "NotMet"), None)
    if unmet is not None:
        yield f"! has not begun: {unmet.reason}"
    for report in component.resources:
        if report.outcome == "halts":
            yield f"! halts at {report.identity}: {report.reason}"
        if report.adoption:
            yield click.style(f"! adopts {report.identity}: {report.adoption}", fg="magenta")
    behind = [report.identity for report in component.resources if report.outcome == "not reached"]
    if behind:
        yield f"! not compared: {', '.join(behind)}"


def format_manager(writer: FieldManagerInfo) -> str:
    """Return a field manager with its operation, subresource and time."""
    details = [writer.operation, *([f"through {writer.subresource}"] if writer.subresource else [])]
    return f"{writer.manager} ({', '.join([*details, *([f'since {writer.since}'] if writer.since else [])])})"


def format_value(value: Any) -> str:
    """Return a value as JSON on one line, cut to a maximum length."""
    text = value if value == HIDDEN else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"
