"""Mutations: named changes of a desired object, each with an optional gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from konverge._internal.feature import Gate, is_enabled
from konverge._internal.kube import Object
from konverge._internal.mutation.author_errors import wrap_author_errors
from konverge._internal.mutation.mutator import Mutator

__all__ = ["Mutation", "apply_mutations", "firing_set"]

M = TypeVar("M", bound=Mutator)
M_contra = TypeVar("M_contra", bound=Mutator, contravariant=True)


# Without slots: before Python 3.12, Mutation[WorkloadMutator](...) fails for a frozen generic class with slots.
@dataclass(frozen=True)
class Mutation(Generic[M_contra]):
    """A named change of a desired object.

    It is contravariant in the mutator: a mutation for a `WorkloadMutator` works with every kind whose mutator derives
    from it.

    Args:
        name: The name in previews, golden files and errors; unique within the resource.
        mutate: Gets the kind's mutator and records edits on it. It runs in every reconcile: keep it free of side
            effects.
        gate: The condition for the mutation (default: None, always enabled).
    """

    name: str
    mutate: Callable[[M_contra], None]
    gate: Gate | None = None


def apply_mutations(
    obj: Object,
    mutations: Sequence[Mutation[M]],
    new_mutator: Callable[[], M],
    *,
    identity: str,
    is_secret: bool = False,
) -> None:
    """Apply every mutation whose gate is enabled to the object, in place.

    konverge evaluates all gates, and all callbacks record their edits, before the first edit. Then it applies the edits
    of each mutation in order, so that a mutation sees the changes of earlier ones.

    Args:
        obj: The desired object.
        mutations: The mutations in order of registration.
        new_mutator: Creates the kind's mutator; each mutation gets its own.
        identity: The object's identity for errors.
        is_secret: True to withhold the texts of errors that are not konverge's (`wrap_author_errors`).

    Raises:
        KonvergeError: A gate, a callback or an edit failed; the message names the object and the mutation.
    """
    subject = f"failed to mutate resource {identity}"
    plans: list[tuple[str, M]] = []
    for mutation in mutations:
        with wrap_author_errors(
            f"{subject}: failed to apply mutation intent for {mutation.name}", is_withheld=is_secret
        ):
            if is_enabled(mutation.gate):
                mutator = new_mutator()
                mutation.mutate(mutator)
                plans.append((mutation.name, mutator))
    for name, mutator in plans:
        with wrap_author_errors(f"{subject}: failed to apply planned mutations of {name}", is_withheld=is_secret):
            mutator.apply_to(obj)


def firing_set(mutations: Sequence[Mutation[M]], *, identity: str) -> tuple[str, ...]:
    """Return the names of the mutations whose gate is enabled.

    Raises:
        KonvergeError: A gate failed; the message names the object and the mutation.
    """
    names = []
    for mutation in mutations:
        with wrap_author_errors(f"failed to evaluate the gate of mutation {mutation.name} of resource {identity}"):
            if is_enabled(mutation.gate):
                names.append(mutation.name)
    return tuple(names)
