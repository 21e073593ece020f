"""Options of a registered resource: the functions that make them, their exclusions and their joint effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, StrEnum

from konverge._internal.feature import Gate, is_enabled
from konverge.errors import format_error

__all__ = [
    "DeletionWave",
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
    "deletion_wave",
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
    DELETION_WAVE = "deletion_wave()"


@dataclass(frozen=True, slots=True)
class DeletionWave:
    """The place of an object in the deletion of its owner.

    Args:
        number: The objects of lower numbers are gone before those of higher ones are deleted.
        timeout: The time after the owner's deletion timestamp for which higher numbers wait for the object; None for
            no limit.
    """

    number: int
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """One option of `ComponentBuilder.with_resource`; the functions of `konverge.options` return it."""

    name: _OptionName
    active: bool = True
    gate: Gate | None = None
    even_if_not_ours: bool = False
    wave: DeletionWave | None = None


def read_only() -> Option:
    """Read the object and count its health, but never write, own or delete it."""
    return Option(_OptionName.READ_ONLY)


def delete(*, even_if_not_ours: bool = False) -> Option:
    """Delete the object if it belongs to the component; its health does not count.

    An object belongs to the component if the owner controls it or, without a controller, if the component has applied
    it.

    Args:
        even_if_not_ours: Delete any object with that name, also one of another owner or of a user.
    """
    return Option(_OptionName.DELETE, even_if_not_ours=even_if_not_ours)


def delete_when(condition: bool, *, even_if_not_ours: bool = False) -> Option:
    """Delete the object if the condition is true, else manage it. Several such options are joined by "or".

    Args:
        condition: True to delete it.
        even_if_not_ours: As for `delete`.
    """
    return Option(_OptionName.DELETE_WHEN, active=condition, even_if_not_ours=even_if_not_ours)


def gated_by(gate: Gate | None, *, even_if_not_ours: bool = False) -> Option:
    """Manage the object while the gate is on, delete it while the gate is off.

    Args:
        gate: The gate; None for none.
        even_if_not_ours: As for `delete`.
    """
    return Option(_OptionName.GATED_BY, gate=gate, even_if_not_ours=even_if_not_ours)


def orphan_when(condition: bool) -> Option:
    """Remove the component's owner reference and keep the object unmanaged if the condition is true."""
    return Option(_OptionName.ORPHAN_WHEN, active=condition)


def auxiliary() -> Option:
    """Manage the object, but do not count its health in the condition. A blocked guard still counts."""
    return Option(_OptionName.AUXILIARY)


def block_on_absence() -> Option:
    """Block the component while a read-only object is absent; later resources wait."""
    return Option(_OptionName.BLOCK_ON_ABSENCE)


def ignore_if_absent() -> Option:
    """Ignore a read-only object in this reconcile if it is absent."""
    return Option(_OptionName.IGNORE_IF_ABSENT)


def suppress_grace_inconsistency_warning() -> Option:
    """Do not log that the grace handler reports Healthy for a resource that has not converged."""
    return Option(_OptionName.SUPPRESS_GRACE_INCONSISTENCY_WARNING)


def unowned() -> Option:
    """Manage the object without an owner reference: the object outlives its owner.

    An earlier reference to the owner is removed, others stay. `delete`, `delete_when` and `gated_by` still delete the
    object.
    """
    return Option(_OptionName.UNOWNED)


def block_on_foreign_controller() -> Option:
    """Block the component while another owner controls the object, instead of failing.

    The component does not write such an object, and suspension counts it as suspended. ``adopt(False)`` is stricter: it
    also blocks on objects without a controller.
    """
    return Option(_OptionName.BLOCK_ON_FOREIGN_CONTROLLER)


def adopt(allowed: bool = True) -> Option:
    """Allow or refuse the adoption of an object with that name that does not belong to the component.

    Without this option, the operator decides (``Operator(adopt=...)``, default: allowed). An adoption is reported once,
    with the managers and fields that it overruled.

    Args:
        allowed: False blocks the component instead. The condition names the controller or the field managers of the
            object. The component does not write such an object, and suspension counts it as suspended.
    """
    return Option(_OptionName.ADOPT, active=allowed)


def deletion_wave(number: int, *, timeout: timedelta | None = None) -> Option:
    """Delete the object in this wave of the deletion of its owner, before the garbage collector deletes the rest.

    A wave begins when the objects of all lower waves are gone, in all components of the owner. An object that does not
    belong to the component stays, and no wave waits for it. With `unowned`, the object does not outlive its owner.

    Args:
        number: The wave, 1 or more; several objects can be in one wave.
        timeout: The time after the owner's deletion timestamp for which later waves wait for the object. Then they
            begin although it still exists. None waits without a limit.
    """
    return Option(_OptionName.DELETION_WAVE, wave=DeletionWave(number, timeout))


class ResourceMode(Enum):
    """The operation of the component on the object."""

    MANAGED = "managed"
    READ_ONLY = "read-only"
    DELETE = "delete"
    ORPHAN = "orphan"


class OnAbsence(Enum):
    """The effect of the absence of a read-only object."""

    FAIL = "fail"
    BLOCK = "block"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class ResourceTreatment:
    """The joint effect of a resource's options."""

    mode: ResourceMode = ResourceMode.MANAGED
    is_auxiliary: bool = False
    on_absence: OnAbsence = OnAbsence.FAIL
    warns_of_grace_inconsistency: bool = True
    is_unowned: bool = False
    blocks_on_foreign_controller: bool = False
    deletes_even_if_not_ours: bool = False
    adopt: bool | None = None
    deletion_wave: DeletionWave | None = None

    def refuses_adoption(self, *, by_default: bool) -> bool:
        """Return True if an object that does not belong to the component blocks it.

        Args:
            by_default: The result for a resource without the option `adopt`.
        """
        return by_default if self.adopt is None else not self.adopt


_MANAGED = ResourceTreatment()

_UNGATED_DELETING = frozenset({_OptionName.DELETE, _OptionName.DELETE_WHEN})
_DELETING = _UNGATED_DELETING | {_OptionName.GATED_BY}


def resolve_options(options: Sequence[object]) -> tuple[ResourceTreatment, list[str]]:
    """Return the joint effect of the options, and all errors in their combination.

    The presence of options decides about a combination, not the values of their conditions. ``orphan_when(False)`` with
    ``delete()`` is an error too; otherwise the error would show only after the condition becomes true. Gates are
    evaluated here, at registration.
    """
    if not options:
        return _MANAGED, []
    given = [option for option in options if isinstance(option, Option)]
    present = [option for option in given if not (_is_gate(option) and option.gate is None)]
    names = {option.name for option in present}
    mistakes = [
        f"an option: expected the result of a function such as options.read_only(), found {type(option).__name__}"
        for option in options
        if not isinstance(option, Option | None)
    ]
    # A string or a function is true by accident: it would delete or release objects by mistake.
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
            "even_if_not_ours=True excludes block_on_foreign_controller(): it deletes objects that this option keeps"
        )
    adoption = {option.active for option in present if option.name is _OptionName.ADOPT}
    if len(adoption) > 1:
        mistakes.append("adopt(True) and adopt(False) exclude each other")
    waves: list[DeletionWave] = []
    for option in present:
        if option.wave is not None and option.wave not in waves:  # a wrong number need not be hashable
            waves.append(option.wave)
    mistakes += _find_wave_errors(waves)
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
        deletion_wave=waves[0] if waves else None,
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
                f"read_only() excludes {', '.join(clashing)}: the component neither deletes nor releases an object "
                "that it does not own. To leave a read-only resource out, use include_when"
            )
        mistakes += [
            f"read_only() excludes {name}: the component does not write a read-only object"
            for name in sorted(
                names
                & {
                    _OptionName.UNOWNED,
                    _OptionName.BLOCK_ON_FOREIGN_CONTROLLER,
                    _OptionName.ADOPT,
                    _OptionName.DELETION_WAVE,
                }
            )
        ]
    else:
        mistakes += [
            f"{name} requires read_only(): the component creates a managed object that is absent"
            for name in (_OptionName.BLOCK_ON_ABSENCE, _OptionName.IGNORE_IF_ABSENT)
            if name in names
        ]
    if _OptionName.ORPHAN_WHEN in names and _OptionName.READ_ONLY not in names:
        clashing = sorted(names & (_DELETING | {_OptionName.DELETION_WAVE}))
        if clashing:
            mistakes.append(f"orphan_when() excludes {', '.join(clashing)}: an object is either released or deleted")
    if {_OptionName.ORPHAN_WHEN, _OptionName.UNOWNED} <= names:
        mistakes.append("orphan_when() excludes unowned(): an unowned object has no owner reference to drop")
    if {_OptionName.BLOCK_ON_ABSENCE, _OptionName.IGNORE_IF_ABSENT} <= names:
        mistakes.append("block_on_absence() and ignore_if_absent() exclude each other")
    return mistakes


def _find_wave_errors(waves: Sequence[DeletionWave]) -> list[str]:
    mistakes = []
    if len(waves) > 1:
        numbers = " and ".join(f"deletion_wave({wave.number!r})" for wave in waves)
        mistakes.append(f"{numbers} exclude each other: an object is deleted in one wave")
    for number, timeout in ((wave.number, wave.timeout) for wave in waves):
        if type(number) is not int or number < 1:
            mistakes.append(f"deletion_wave(): expected a whole number, 1 or more, found {number!r}")
        if timeout is not None and not isinstance(timeout, timedelta):
            mistakes.append(
                f"deletion_wave(): expected a timedelta or None for timeout, found {type(timeout).__name__}"
            )
        elif timeout is not None and timeout <= timedelta(0):
            mistakes.append(f"deletion_wave(): expected a timeout above zero, found {timeout}; None has no limit")
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
