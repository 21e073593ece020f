"""The advice at the end of the engine's errors, in the words of those who declare the objects."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Remedies"]


@dataclass(frozen=True, slots=True)
class Remedies:
    """Ways to fix what a declaration causes; the default names the options of Python.

    A framework with a language of its own, such as the box file, replaces them by its fields.

    Args:
        second_controller: For an object that another object controls already.
        other_namespace: For an object in another namespace than its owner.
        immutable: For a change of a field that the server does not allow.
        two_components: For one object in two components of an owner.
    """

    second_controller: str = "declare unowned() or block_on_foreign_controller()"
    other_namespace: str = "Declare unowned() to manage it without owning it"
    immutable: str = "Declare recreate=True on the primitive, or keep the old value"
    two_components: str = "Leave it out of one of the two, or declare it read_only() there"
