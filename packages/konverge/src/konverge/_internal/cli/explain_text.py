"""The explanation of an owner's conditions as text. Pure; click removes the colors without a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import click

from konverge._internal.cli.diff_text import format_manager, format_status_change, format_value
from konverge._internal.component.dry_run import (
    ConditionReport,
    DryRunReport,
    FieldRead,
    FunctionEvaluation,
    ResourceReport,
)
from konverge._internal.kube import format_time
from konverge._internal.operator.dry_run import OwnerDryRun

__all__ = ["format_explanation"]

_WIDTH = 118
_MAX_FIELDS = 10
_MAX_CONFLICTS = 8
_COLOURS = {"True": "green", "False": "yellow", "Unknown": "cyan"}
# Fields that are read together with a condition and rarely decide.
_IGNORED_SUFFIXES = (".lastTransitionTime", ".observedGeneration", ".message")


def format_explanation(owner: OwnerDryRun, now: datetime) -> Iterator[str]:
    """Yield the lines about the owner and each component.

    Args:
        owner: The dry run of its next reconcile.
        now: The current time, for ages.
    """
    where = f"{owner.namespace}/{owner.name}" if owner.namespace else owner.name
    yield click.style(f"{owner.kind} {where}", bold=True)
    if owner.is_deleting:
        yield from _format_deletion(owner, now)
        return
    yield from _format_row(owner.condition_type, [_format_condition(owner.before, now)])
    if _is_different(owner.before, owner.after):
        yield from _format_row("", [f"now: {_format_condition(owner.after, now)}"])
    for error in owner.errors:
        yield from _format_row("fails", [error])
    yield from _format_row("status", [format_status_change(field) for field in owner.status[:_MAX_FIELDS]])
    if len(owner.status) > _MAX_FIELDS:
        yield from _format_row("", [f"… and {len(owner.status) - _MAX_FIELDS} more fields"])
    for component in owner.components:
        yield ""
        yield from _format_component(component, now)


def _format_deletion(owner: OwnerDryRun, now: datetime) -> Iterator[str]:
    """Yield what is known about the deletion: who holds the owner, and what each wave waits for."""
    since = "" if owner.deleted_at is None else f" since {format_time(owner.deleted_at)}"
    yield f"  is being deleted{since}: its components are not reconciled, and its objects are deleted with it"
    for error in owner.errors:
        yield from _format_row("fails", [error])
    if owner.before is not None:
        yield from _format_row(owner.condition_type, [_format_condition(owner.before, now)])
    yield from _format_row("held by", [f"finalizer {name}" for name in owner.finalizers])
    current = next((wave.number for wave in owner.waves if wave.remaining), None)
    for wave in owner.waves:
        if not wave.remaining:
            lines = ["gone"]
        elif wave.number == current:
            until = "" if wave.ends_at is None else f", until {format_time(wave.ends_at)}"
            lines = [f"waits for {name}" for name in wave.remaining[:_MAX_FIELDS]]
            lines[-1] += until
        else:
            lines = [f"{name}, after wave {current}" for name in wave.remaining[:_MAX_FIELDS]]
        if len(wave.remaining) > _MAX_FIELDS:
            lines.append(f"… and {len(wave.remaining) - _MAX_FIELDS} more objects")
        yield from _format_row(f"wave {wave.number}", lines)


def _format_component(component: DryRunReport, now: datetime) -> Iterator[str]:
    yield click.style(f"component {component.component}", bold=True) + f"  {component.condition_type}"
    yield from _format_row("has", [_format_condition(component.before, now)])
    same = (
        "the same" if not _is_different(component.before, component.after) else _format_condition(component.after, now)
    )
    yield from _format_row("now", [same])
    yield from _format_row("because", [component.rule])
    if component.gate != "none":
        yield from _format_row("gate", [component.gate])
    yield from _format_row(
        "after",
        [
            f"{report.name}: {report.verdict}" + (f" ({report.reason})" if report.reason else "")
            for report in component.prerequisites
        ],
    )
    if component.is_suspended:
        yield from _format_row("suspended", ["yes"])
    for number, report in enumerate(component.resources, start=1):
        yield from _format_resource(number, report)
    yield from _format_row("next", component.next)


def _format_resource(number: int, report: ResourceReport) -> Iterator[str]:
    how = report.mode + (", auxiliary" if report.is_auxiliary else "")
    yield f"  {number:2}. {report.identity}  {click.style(f'[{how}]', dim=True)}  {_format_outcome(report)}"
    if report.adoption:
        yield from _format_detail(f"adoption: {report.adoption}", colour="magenta")
    if report.convergence is not None and report.outcome != "halts":
        yield from _format_evaluation("", report.convergence)
    for cause in report.causes:
        yield from _format_detail(f"cause: {cause}", colour="yellow")
    if report.grace is not None and report.grace.status != "Healthy":
        yield from _format_detail(f"grace: {_format_result(report.grace)}")
    if report.suspension is not None:
        yield from _format_evaluation("suspension: ", report.suspension)
    if report.override:
        yield from _format_detail(f"overridden: {report.override}", colour="magenta")
    for contest in report.contests[:_MAX_CONFLICTS]:
        who = format_manager(contest.writer)
        if contest.is_fought_over:
            values = f"{contest.path} is {format_value(contest.live)}, desired {format_value(contest.wanted)}"
            yield from _format_detail(f"fought over by {who}: {values}", colour="magenta")
        else:
            yield from _format_detail(f"{contest.path} is {who}'s too")
    for takeover in report.takeovers[:_MAX_CONFLICTS]:
        yield from _format_detail(f"taken over from {takeover}", colour="magenta")
    if len(report.contests) > _MAX_CONFLICTS:
        yield from _format_detail(f"… and {len(report.contests) - _MAX_CONFLICTS} fields of other field managers")


def _format_outcome(report: ResourceReport) -> str:
    absent = report.exists is False
    changes = {change.action: change for change in report.changes}
    match report.outcome:
        case "halts":
            return click.style(f"halts the component: {report.reason}", fg="yellow")
        case "failed":
            return click.style("fails with the error above", fg="red")
        case "not reached":
            return "not reached"
        case "left alone":
            return f"left alone: {report.reason or 'it cannot be suspended'}"
        case "ignored":
            return "absent, which is allowed"
        case "read":
            return "exists"
        case "removed" if not changes:
            return "absent, as desired" if absent else "is being deleted"
        case "released" if not changes:
            return "absent" if absent else "already released"
    if not changes:
        return "absent, as desired" if absent else "as desired"
    return ", ".join(_format_change(action, len(change.fields)) for action, change in changes.items())


def _format_change(action: str, fields: int) -> str:
    word = {"create": "created", "update": "updated", "delete": "deleted", "release": "released"}[action]
    count = f" ({fields} field{'s' if fields != 1 else ''})" if action == "update" else ""
    return click.style(f"would be {word}{count}", fg="yellow")


def _format_evaluation(what: str, judgement: FunctionEvaluation) -> Iterator[str]:
    yield from _format_detail(what + _format_result(judgement))
    readings = [
        reading
        for reading in judgement.decided_by
        if "]" not in reading.path or not reading.path.endswith(_IGNORED_SUFFIXES)
    ]
    if readings:
        more = f", and {len(readings) - _MAX_FIELDS} more" if len(readings) > _MAX_FIELDS else ""
        yield from _format_detail("read " + ", ".join(map(_format_reading, readings[:_MAX_FIELDS])) + more, dim=True)


def _format_reading(reading: FieldRead) -> str:
    return f"{reading.path}={format_value(reading.value) if reading.is_present else 'absent'}"


def _format_result(judgement: FunctionEvaluation) -> str:
    return f"{judgement.status}: {judgement.reason}" if judgement.reason else judgement.status


def _format_condition(condition: ConditionReport | None, now: datetime) -> str:
    if condition is None:
        return "no condition yet"
    status = click.style(f"{condition.status} {condition.reason}", fg=_COLOURS.get(condition.status))
    since = ""
    if condition.since is not None:
        since = f", since {format_time(condition.since)} ({_format_age(now - condition.since)})"
    return f"{status}{since}" + (f": {condition.message}" if condition.message else "")


def _is_different(one: ConditionReport | None, other: ConditionReport | None) -> bool:
    def get_values(condition: ConditionReport | None) -> tuple[str, str, str] | None:
        return None if condition is None else (condition.status, condition.reason, condition.message)

    return get_values(one) != get_values(other)


def _format_age(elapsed: timedelta) -> str:
    seconds = max(0, int(elapsed.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _format_row(title: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in textwrap.wrap(text, _WIDTH - 12, break_long_words=False, break_on_hyphens=False) or [""]:
            yield f"  {title:<9} {line}"
            title = ""


def _format_detail(text: str, *, dim: bool = False, colour: str | None = None) -> Iterator[str]:
    for place, line in enumerate(textwrap.wrap(text, _WIDTH - 8, break_long_words=False, break_on_hyphens=False)):
        yield "      " + ("  " if place else "") + click.style(line, dim=dim or None, fg=colour)
