"""The report of an upgrade check as text. Pure; click removes the colors without a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from konverge._internal.cli.plurals import format_count
from konverge._internal.upgrade.findings import (
    DefinitionReport,
    Finding,
    ObjectFindings,
    OwnerChanges,
    OwnersReport,
    PermissionsReport,
    UpgradeReport,
)

__all__ = ["format_upgrade"]

_MAX_OWNERS = 50
_MAX_WRITES = 20

_LEVELS = {"refused": "red", "breaking": "red", "note": ""}
_OUTCOMES = {
    "refused": "cannot be written any more",
    "survives": "would be invalid, and survive until the invalid fields change (ratcheting)",
    "loses fields": "would lose fields",
    "not converted": "cannot be converted",
    "already invalid": "are invalid already",
}
_ACTIONS = {"create": "created", "update": "updated", "delete": "deleted", "release": "released"}


def format_upgrade(report: UpgradeReport) -> Iterator[str]:
    """Yield the lines of the report, the verdict last."""
    for definition in report.definitions:
        yield from _format_definition(definition)
    yield from _format_owners(report.owners)
    if report.permissions is not None:
        yield from _format_permissions(report.permissions)
    if report.not_checked:
        yield click.style("not checked", bold=True)
        yield from (f"  {line}" for line in report.not_checked)
    if report.breaks:
        yield click.style("This upgrade breaks something; see the lines with !", fg="red")
    elif report.not_checked:
        yield "Nothing breaks in the parts that were checked."
    else:
        yield click.style("Nothing breaks.", fg="green")


def _format_definition(report: DefinitionReport) -> Iterator[str]:
    yield click.style(f"CustomResourceDefinition {report.name}", bold=True)
    if not report.is_installed:
        yield "    is not in the cluster: it would be created"
    for finding in report.findings:
        yield _format_finding(finding)
    if report.is_installed and not report.findings:
        yield "    unchanged"
    if len(report.stored_versions) > 1:
        yield f"    stored versions: {', '.join(report.stored_versions)}"
    if report.checked_objects:
        cut = " (there are more: increase --max-objects or --timeout)" if report.is_cut else ""
        yield f"    {format_count(report.checked_objects, 'object')} checked{cut}"
    for outcome, number in report.outcomes.items():
        sign = " " if outcome == "already invalid" else "!"
        yield f"  {sign} {format_count(number, 'object')}: {_OUTCOMES[outcome]}"
        listed = [entry for entry in report.objects if entry.outcome == outcome]
        yield from (f"      {_format_object(entry)}" for entry in listed)
        if number > len(listed):
            yield f"      … and {format_count(number - len(listed), 'object')} more"


def _format_finding(finding: Finding) -> str:
    color = _LEVELS[finding.level]
    sign = " " if finding.level == "note" else "!"
    level = click.style(finding.level, fg=color) if color else finding.level
    text = ": ".join(part for part in (finding.path, finding.change) if part)
    return f"  {sign} {level}  {text}{f'; {finding.advice}' if finding.advice else ''}"


def _format_object(entry: ObjectFindings) -> str:
    parts = [*entry.errors, *([f"drops {', '.join(entry.dropped)}"] if entry.dropped else [])]
    return f"{entry.name}  {'; '.join(parts)}"


def _format_owners(report: OwnersReport) -> Iterator[str]:
    cut = " (there are more: increase --max-owners or --timeout)" if report.is_cut else ""
    yield click.style(f"{format_count(report.checked, 'owner')} reconciled as a dry run{cut}", bold=True)
    counts = [f"{number} {_ACTIONS[action]}" for action, number in report.writes.items()]
    if report.checked:
        yield f"    objects: {', '.join(counts) if counts else 'nothing would be written'}"
    # First what breaks or fails, so that the limit does not hide it.
    owners = sorted(report.owners, key=lambda owner: not (owner.unreadable or owner.immutable or owner.errors))
    for owner in owners[:_MAX_OWNERS]:
        yield from _format_owner(owner)
    if len(report.owners) > _MAX_OWNERS:
        yield f"    … and {format_count(len(report.owners) - _MAX_OWNERS, 'owner')} more; see -o json"


def _format_owner(owner: OwnerChanges) -> Iterator[str]:
    yield f"    {owner.kind} {owner.name}{'  (a part is not reached)' if owner.halts else ''}"
    yield from (f"      {write}" for write in owner.writes[:_MAX_WRITES])
    if len(owner.writes) > _MAX_WRITES:
        yield f"      … and {format_count(len(owner.writes) - _MAX_WRITES, 'object')} more; see -o json"
    if owner.unreadable:
        yield click.style(f"    ! not reconciled any more: {owner.unreadable}", fg="red")
    yield from (click.style(f"    ! {text}", fg="red") for text in owner.immutable)
    yield from (f"      fails: {text}" for text in owner.errors)


def _format_permissions(report: PermissionsReport) -> Iterator[str]:
    yield click.style(f"permissions of ServiceAccount {report.account} ({', '.join(report.roles)})", bold=True)
    yield from (click.style(f"  ! {text}", fg="red") for text in report.missing)
    yield from (f"    no longer needed: {text}" for text in report.unneeded)
    yield from (f"    not derived: {' '.join(text.split())}" for text in report.gaps)
    if not (report.missing or report.unneeded):
        yield "    sufficient"
