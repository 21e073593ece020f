"""Why an owner's components say what they say, as text. Pure; colours are taken off again where no terminal is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import click

from konverge.cli.diff_text import value_text, writer_text
from konverge.component.rehearsal import Judgement, Reading, Rehearsal, Reported, ResourceStory
from konverge.kube import format_time
from konverge.operator.rehearsing import OwnerRehearsal

__all__ = ["explain_lines"]

_WIDTH = 118
_MOST_FIELDS = 10
_MOST_CONTESTS = 8
_COLOURS = {"True": "green", "False": "yellow", "Unknown": "cyan"}
# What a condition is read with, and what seldom decides.
_ASIDE = (".lastTransitionTime", ".observedGeneration", ".message")


def explain_lines(owner: OwnerRehearsal, now: datetime) -> Iterator[str]:
    """The owner, and each component for itself.

    Args:
        owner: What its next pass would come to.
        now: The time, to tell how long ago something was.
    """
    where = f"{owner.namespace}/{owner.name}" if owner.namespace else owner.name
    yield click.style(f"{owner.kind} {where}", bold=True)
    if owner.is_deleting:
        yield "  is being deleted: its components are left alone, and its objects go with it"
        return
    yield from _row(owner.condition_type, [_condition(owner.before, now)])
    if _differ(owner.before, owner.after):
        yield from _row("", [f"now: {_condition(owner.after, now)}"])
    for error in owner.errors:
        yield from _row("fails", [error])
    for component in owner.components:
        yield ""
        yield from _component(component, now)


def _component(component: Rehearsal, now: datetime) -> Iterator[str]:
    yield click.style(f"component {component.component}", bold=True) + f"  {component.condition_type}"
    yield from _row("has", [_condition(component.before, now)])
    same = "the same" if not _differ(component.before, component.after) else _condition(component.after, now)
    yield from _row("now", [same])
    yield from _row("because", [component.rule])
    if component.gate != "none":
        yield from _row("gate", [component.gate])
    yield from _row(
        "after",
        [
            f"{story.name}: {story.verdict}" + (f" ({story.reason})" if story.reason else "")
            for story in component.prerequisites
        ],
    )
    if component.is_suspended:
        yield from _row("suspended", ["yes"])
    for number, story in enumerate(component.resources, start=1):
        yield from _resource(number, story)
    yield from _row("next", component.next)


def _resource(number: int, story: ResourceStory) -> Iterator[str]:
    how = story.mode + (", auxiliary" if story.is_auxiliary else "")
    yield f"  {number:2}. {story.identity}  {click.style(f'[{how}]', dim=True)}  {_outcome(story)}"
    if story.adoption:
        yield from _below(f"adoption: {story.adoption}", colour="magenta")
    if story.convergence is not None and story.outcome != "halts":
        yield from _judged("", story.convergence)
    if story.grace is not None and story.grace.status != "Healthy":
        yield from _below(f"grace: {_said(story.grace)}")
    if story.suspension is not None:
        yield from _judged("suspension: ", story.suspension)
    if story.override:
        yield from _below(f"overridden: {story.override}", colour="magenta")
    for contest in story.contests[:_MOST_CONTESTS]:
        who = writer_text(contest.writer)
        if contest.is_fought_over:
            values = f"{contest.path} is {value_text(contest.live)}, wanted {value_text(contest.wanted)}"
            yield from _below(f"fought over by {who}: {values}", colour="magenta")
        else:
            yield from _below(f"{contest.path} is {who}'s too")
    if len(story.contests) > _MOST_CONTESTS:
        yield from _below(f"… and {len(story.contests) - _MOST_CONTESTS} more that others write too")


def _outcome(story: ResourceStory) -> str:
    absent = story.exists is False
    changes = {change.action: change for change in story.changes}
    match story.outcome:
        case "halts":
            return click.style(f"halts the component: {story.reason}", fg="yellow")
        case "failed":
            return click.style("fails, as said above", fg="red")
        case "not reached":
            return "not reached"
        case "left alone":
            return f"left alone: {story.reason or 'it cannot be suspended'}"
        case "ignored":
            return "absent, and may be"
        case "read":
            return "is there"
        case "removed" if not changes:
            return "absent, as it should be" if absent else "is going"
        case "released" if not changes:
            return "absent" if absent else "released already"
    if not changes:
        return "absent, as it should be" if absent else "as wanted"
    return ", ".join(_changed(action, len(change.fields)) for action, change in changes.items())


def _changed(action: str, fields: int) -> str:
    word = {"create": "created", "update": "updated", "delete": "deleted", "release": "released"}[action]
    count = f" ({fields} field{'s' if fields != 1 else ''})" if action == "update" else ""
    return click.style(f"would be {word}{count}", fg="yellow")


def _judged(what: str, judgement: Judgement) -> Iterator[str]:
    yield from _below(what + _said(judgement))
    told = [reading for reading in judgement.decided_by if "]" not in reading.path or not reading.path.endswith(_ASIDE)]
    if told:
        more = f", and {len(told) - _MOST_FIELDS} more" if len(told) > _MOST_FIELDS else ""
        yield from _below("read " + ", ".join(map(_reading, told[:_MOST_FIELDS])) + more, dim=True)


def _reading(reading: Reading) -> str:
    return f"{reading.path}={value_text(reading.value) if reading.is_present else 'absent'}"


def _said(judgement: Judgement) -> str:
    return f"{judgement.status}: {judgement.reason}" if judgement.reason else judgement.status


def _condition(condition: Reported | None, now: datetime) -> str:
    if condition is None:
        return "no condition yet"
    told = click.style(f"{condition.status} {condition.reason}", fg=_COLOURS.get(condition.status))
    since = ""
    if condition.since is not None:
        since = f", since {format_time(condition.since)} ({_ago(now - condition.since)})"
    return f"{told}{since}" + (f": {condition.message}" if condition.message else "")


def _differ(one: Reported | None, other: Reported | None) -> bool:
    def said(condition: Reported | None) -> tuple[str, str, str] | None:
        return None if condition is None else (condition.status, condition.reason, condition.message)

    return said(one) != said(other)


def _ago(elapsed: timedelta) -> str:
    seconds = max(0, int(elapsed.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _row(title: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in textwrap.wrap(text, _WIDTH - 12, break_long_words=False, break_on_hyphens=False) or [""]:
            yield f"  {title:<9} {line}"
            title = ""


def _below(text: str, *, dim: bool = False, colour: str | None = None) -> Iterator[str]:
    for place, line in enumerate(textwrap.wrap(text, _WIDTH - 8, break_long_words=False, break_on_hyphens=False)):
        yield "      " + ("  " if place else "") + click.style(line, dim=dim or None, fg=colour)
