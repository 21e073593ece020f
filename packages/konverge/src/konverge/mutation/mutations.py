"""Mutations: named changes to a desired object, each behind a gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from konverge.feature import Gate, is_enabled
from konverge.kube import Object
from konverge.mutation.author_errors import wrap_author_errors
from konverge.mutation.mutator import Mutator

__all__ = ["Mutation", "apply_mutations", "firing_set"]

M = TypeVar("M", bound=Mutator)
M_contra = TypeVar("M_contra", bound=Mutator, contravariant=True)


# Without slots: a frozen generic class with slots cannot be made as Mutation[WorkloadMutator](...) before Python 3.12.
@dataclass(frozen=True)
class Mutation(Generic[M_contra]):
    """A named change.

    Contravariant in the mutator: a mutation that asks only for a `WorkloadMutator` fits every kind whose mutator is
    one.

    Args:
        name: Unique within the resource; previews, golden files and errors refer to it.
        mutate: Gets the kind's mutator and records edits on it. It runs on every pass: keep it free of side effects.
        gate: None is always on.
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
    """Change the object, in place, by every mutation whose gate is on.

    All gates are asked and all callbacks record their edits before the first edit is made. Then the plans are carried
    out in order, so that each mutation meets the object as the earlier ones left it.

    Args:
        obj: The desired object.
        mutations: In order of registration.
        new_mutator: Makes the kind's mutator; each mutation gets one of its own.
        identity: The object's, for errors.
        is_secret: Withhold the text of foreign errors (`failure_of`).

    Raises:
        KonvergeError: A gate, a callback or an edit failed; names the object and the mutation.
    """
    failed = f"failed to mutate resource {identity}"
    plans: list[tuple[str, M]] = []
    for mutation in mutations:
        with wrap_author_errors(
            f"{failed}: failed to apply mutation intent for {mutation.name}", is_withheld=is_secret
        ):
            if is_enabled(mutation.gate):
                mutator = new_mutator()
                mutation.mutate(mutator)
                plans.append((mutation.name, mutator))
    for name, mutator in plans:
        with wrap_author_errors(f"{failed}: failed to apply planned mutations of {name}", is_withheld=is_secret):
            mutator.apply_to(obj)


def firing_set(mutations: Sequence[Mutation[M]], *, identity: str) -> tuple[str, ...]:
    """The names of the mutations whose gate is on.

    Raises:
        KonvergeError: A gate failed; names the object and the mutation.
    """
    names = []
    for mutation in mutations:
        with wrap_author_errors(f"failed to evaluate the gate of mutation {mutation.name} of resource {identity}"):
            if is_enabled(mutation.gate):
                names.append(mutation.name)
    return tuple(names)
