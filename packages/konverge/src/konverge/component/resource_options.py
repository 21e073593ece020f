"""How a component treats a resource: the options of registration, what they exclude, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

from konverge.errors import format_error
from konverge.feature import Gate, is_enabled

__all__ = [
    "OnAbsence",
    "Option",
    "ResourceMode",
    "ResourceTreatment",
    "adopt",
    "auxiliary",
    "block_on_absence",
    "block_on_foreign_controller",
    "delete",
    "delete_when",
    "gated_by",
    "ignore_if_absent",
    "orphan_when",
    "read_only",
    "resolve_options",
    "suppress_grace_inconsistency_warning",
    "unowned",
]


class _OptionName(StrEnum):
    READ_ONLY = "read_only()"
    DELETE = "delete()"
    DELETE_WHEN = "delete_when()"
    GATED_BY = "gated_by()"
    ORPHAN_WHEN = "orphan_when()"
    AUXILIARY = "auxiliary()"
    BLOCK_ON_ABSENCE = "block_on_absence()"
    IGNORE_IF_ABSENT = "ignore_if_absent()"
    SUPPRESS_GRACE_INCONSISTENCY_WARNING = "suppress_grace_inconsistency_warning()"
    UNOWNED = "unowned()"
    BLOCK_ON_FOREIGN_CONTROLLER = "block_on_foreign_controller()"
    ADOPT = "adopt()"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of `ComponentBuilder.with_resource`; made by the functions of this module."""

    name: _OptionName
    active: bool = True
    gate: Gate | None = None
    even_if_not_ours: bool = False


def read_only() -> Option:
    """Fetch the object and let its health count, but never write, own or delete it."""
    return Option(_OptionName.READ_ONLY)


def delete(*, even_if_not_ours: bool = False) -> Option:
    """Remove the object from the cluster if it is the component's; it has no health.

    It is the component's if the owner controls it or, where it has no controller, if the component has applied it.

    Args:
        even_if_not_ours: Remove whatever stands under that name, also an object of another owner or of a person.
    """
    return Option(_OptionName.DELETE, even_if_not_ours=even_if_not_ours)


def delete_when(condition: bool, *, even_if_not_ours: bool = False) -> Option:
    """Remove the object when the condition is true, else manage it. Several are joined by "or".

    Args:
        condition: Whether to remove it.
        even_if_not_ours: As for `delete`.
    """
    return Option(_OptionName.DELETE_WHEN, active=condition, even_if_not_ours=even_if_not_ours)


def gated_by(gate: Gate | None, *, even_if_not_ours: bool = False) -> Option:
    """Manage the object while the gate is on, remove it while it is off; None is no gate.

    Args:
        gate: The gate.
        even_if_not_ours: As for `delete`.
    """
    return Option(_OptionName.GATED_BY, gate=gate, even_if_not_ours=even_if_not_ours)


def orphan_when(condition: bool) -> Option:
    """When the condition is true, drop the component's owner reference and leave the object to itself."""
    return Option(_OptionName.ORPHAN_WHEN, active=condition)


def auxiliary() -> Option:
    """Manage the object, but leave its health out of the condition (a blocked guard still counts)."""
    return Option(_OptionName.AUXILIARY)


def block_on_absence() -> Option:
    """Read-only: when the object is absent, the component is blocked and the resources after it wait."""
    return Option(_OptionName.BLOCK_ON_ABSENCE)


def ignore_if_absent() -> Option:
    """Read-only: when the object is absent, it contributes nothing in this pass."""
    return Option(_OptionName.IGNORE_IF_ABSENT)


def suppress_grace_inconsistency_warning() -> Option:
    """Do not log that the grace handler is content while the resource has not converged."""
    return Option(_OptionName.SUPPRESS_GRACE_INCONSISTENCY_WARNING)


def unowned() -> Option:
    """Manage the object without owning it: it gets no owner reference and outlives its owner.

    A reference that the owner has from before is removed, others stay. `delete`, `delete_when` and `gated_by` still
    remove the object.
    """
    return Option(_OptionName.UNOWNED)


def block_on_foreign_controller() -> Option:
    """While another owner controls the object, block instead of failing.

    Such an object is not touched, and suspension counts it as suspended. `adopt` asks for more: ``adopt(False)`` blocks
    on objects without a controller, too.
    """
    return Option(_OptionName.BLOCK_ON_FOREIGN_CONTROLLER)


def adopt(allowed: bool = True) -> Option:
    """Whether the component takes over an object of that name that exists already and is not its own.

    Without this option the operator decides (``Operator(adopt=...)``), which allows it if nothing else is said. The
    adoption is told once, with the managers and fields that were overruled.

    Args:
        allowed: False blocks the component instead, with the name of who has the object: its controller, or its field
            managers. Such an object is not touched, and suspension counts it as suspended.
    """
    return Option(_OptionName.ADOPT, active=allowed)


class ResourceMode(Enum):
    """What the component does with the object."""

    MANAGED = "managed"
    READ_ONLY = "read-only"
    DELETE = "delete"
    ORPHAN = "orphan"


class OnAbsence(Enum):
    """What the absence of a read-only object means."""

    FAIL = "fail"
    BLOCK = "block"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class ResourceTreatment:
    """What a resource's options come to."""

    mode: ResourceMode = ResourceMode.MANAGED
    is_auxiliary: bool = False
    on_absence: OnAbsence = OnAbsence.FAIL
    warns_of_grace_inconsistency: bool = True
    is_unowned: bool = False
    blocks_on_foreign_controller: bool = False
    deletes_even_if_not_ours: bool = False
    adopt: bool | None = None

    def refuses_adoption(self, *, by_default: bool) -> bool:
        """Tell whether an object that is not ours blocks the component.

        Args:
            by_default: What holds where the resource does not say.
        """
        return by_default if self.adopt is None else not self.adopt


_MANAGED = ResourceTreatment()

_UNGATED_DELETING = frozenset({_OptionName.DELETE, _OptionName.DELETE_WHEN})
_DELETING = _UNGATED_DELETING | {_OptionName.GATED_BY}


def resolve_options(options: Sequence[object]) -> tuple[ResourceTreatment, list[str]]:
    """What the options come to, and every mistake in their combination.

    A combination is judged by which options are present, not by their conditions' values: ``orphan_when(False)`` with
    ``delete()`` is refused too, or the mistake would show up only on the day the condition turns true. Gates are
    evaluated here, at registration.
    """
    if not options:
        return _MANAGED, []
    given = [option for option in options if isinstance(option, Option)]
    present = [option for option in given if not (_is_gate(option) and option.gate is None)]
    names = {option.name for option in present}
    mistakes = [
        f"an option: expected what a function such as read_only() answers, found {type(option).__name__}"
        for option in options
        if not isinstance(option, Option | None)
    ]
    # What reads as true by accident, a text or a function, would delete or release what it should not.
    conditions: list[tuple[str, object]] = [(option.name, option.active) for option in given]
    conditions += [(f"{option.name}: even_if_not_ours", option.even_if_not_ours) for option in given]
    mistakes += [
        f"{name}: expected a bool, found {type(condition).__name__}"
        for name, condition in conditions
        if not isinstance(condition, bool)
    ]
    mistakes += _find_exclusions(names)
    deletes_any = any(option.even_if_not_ours for option in given)
    if deletes_any and _OptionName.BLOCK_ON_FOREIGN_CONTROLLER in names:
        mistakes.append(
            "even_if_not_ours=True excludes block_on_foreign_controller(): it deletes what that option leaves alone"
        )
    adoption = {option.active for option in present if option.name is _OptionName.ADOPT}
    if len(adoption) > 1:
        mistakes.append("adopt(True) and adopt(False) exclude each other")
    gates_on, gate_mistakes = _evaluate_gates(present)
    mistakes += gate_mistakes
    deleted = not gates_on or any(option.active for option in present if option.name in _UNGATED_DELETING)
    orphaned = any(option.active for option in present if option.name is _OptionName.ORPHAN_WHEN)
    if _OptionName.READ_ONLY in names:
        mode = ResourceMode.READ_ONLY
    elif orphaned:
        mode = ResourceMode.ORPHAN
    else:
        mode = ResourceMode.DELETE if deleted else ResourceMode.MANAGED
    absence = OnAbsence.FAIL
    if _OptionName.BLOCK_ON_ABSENCE in names:
        absence = OnAbsence.BLOCK
    elif _OptionName.IGNORE_IF_ABSENT in names:
        absence = OnAbsence.IGNORE
    treatment = ResourceTreatment(
        mode=mode,
        is_auxiliary=_OptionName.AUXILIARY in names,
        on_absence=absence,
        warns_of_grace_inconsistency=_OptionName.SUPPRESS_GRACE_INCONSISTENCY_WARNING not in names,
        is_unowned=_OptionName.UNOWNED in names,
        blocks_on_foreign_controller=_OptionName.BLOCK_ON_FOREIGN_CONTROLLER in names,
        deletes_even_if_not_ours=deletes_any,
        adopt=next(iter(adoption), None),
    )
    return treatment, mistakes


def _is_gate(option: Option) -> bool:
    return option.name is _OptionName.GATED_BY


def _find_exclusions(names: set[_OptionName]) -> list[str]:
    mistakes = []
    if _OptionName.READ_ONLY in names:
        clashing = sorted(names & (_DELETING | {_OptionName.ORPHAN_WHEN}))
        if clashing:
            mistakes.append(
                f"read_only() excludes {', '.join(clashing)}: what the component does not own it neither removes nor "
                "releases. To leave a read-only resource out, use include_when"
            )
        mistakes += [
            f"read_only() excludes {name}: a read-only object is nobody's business but its owner's"
            for name in sorted(
                names & {_OptionName.UNOWNED, _OptionName.BLOCK_ON_FOREIGN_CONTROLLER, _OptionName.ADOPT}
            )
        ]
    else:
        mistakes += [
            f"{name} needs read_only(): a managed resource is never absent for long"
            for name in (_OptionName.BLOCK_ON_ABSENCE, _OptionName.IGNORE_IF_ABSENT)
            if name in names
        ]
    if _OptionName.ORPHAN_WHEN in names and _OptionName.READ_ONLY not in names:
        clashing = sorted(names & _DELETING)
        if clashing:
            mistakes.append(f"orphan_when() excludes {', '.join(clashing)}: an object is either released or removed")
    if {_OptionName.ORPHAN_WHEN, _OptionName.UNOWNED} <= names:
        mistakes.append("orphan_when() excludes unowned(): an unowned object has no owner reference to drop")
    if {_OptionName.BLOCK_ON_ABSENCE, _OptionName.IGNORE_IF_ABSENT} <= names:
        mistakes.append("block_on_absence() and ignore_if_absent() exclude each other")
    return mistakes


def _evaluate_gates(options: Sequence[Option]) -> tuple[bool, list[str]]:
    on = True
    mistakes = []
    for option in options:
        if option.gate is None:
            continue
        try:
            on = is_enabled(option.gate) and on
        except Exception as error:  # noqa: BLE001  # a gate is the author's code; the builder reports it with the rest
            mistakes.append(f"its gate cannot be evaluated: {format_error(error)}")
    return on, mistakes
