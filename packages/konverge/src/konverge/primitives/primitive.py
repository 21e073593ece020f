"""The generic layer: everything that does not differ between kinds.

A primitive is made from a desired object and functions of its author. It checks both when it is made, but does not
raise: the mistakes wait in `Primitive.mistakes`, because a component's builder reports all mistakes of all its
resources at once, and an exception from the first constructor would hide the rest. A primitive with mistakes that is
used all the same raises them.

The baseline is kept as JSON text. That makes the value immutable, gives each caller of `desired` a private object in a
tenth of the time of a deep copy, and finds what is no JSON when the primitive is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypedDict, TypeVar

import msgspec

from konverge.errors import BuildError, KonvergeError
from konverge.kube import GroupVersionKind, Object, format_identity
from konverge.mutation import Mutation, Mutator, apply_mutations, copy_json, encode_json, firing_set, wrap_author_errors
from konverge.primitives.argument_validation import (
    read_cells,
    read_fields,
    read_key,
    read_kind,
    validate_function,
    validate_identity,
    validate_mutations,
    validate_options,
    validate_secret_values,
)
from konverge.primitives.data_cells import Data, Extraction
from konverge.primitives.resource_protocol import (
    UNBLOCKED,
    Convergence,
    Grace,
    Guard,
    GuardResult,
    Operation,
    Suspension,
    SuspensionStatus,
    handles_secret,
)

__all__ = ["CommonOptions", "DesiredObject", "Extractor", "LifecycleHandlers", "Primitive"]

M = TypeVar("M", bound=Mutator)
A = TypeVar("A")


class SupportsToDict(Protocol):
    """An object of some library that knows its JSON form."""

    def to_dict(self) -> Mapping[str, Any]:
        """The object as JSON has it, with the API's field names."""


DesiredObject: TypeAlias = Mapping[str, Any] | SupportsToDict
"""What a primitive is made from."""

Extractor: TypeAlias = Callable[[Object], object]
"""Gets a private copy of the live object and takes from it what later resources need; its answer is ignored."""


CellsArgument: TypeAlias = Data[Any] | Iterable[Data[Any]]
"""One data cell or many."""


class CommonOptions(TypedDict, total=False):
    """What every primitive may be given by keyword, whatever its category.

    Attributes:
        guard: What must allow the resource before it is applied or read.
        extract: One or many; each gets its own copy of the live object, after each apply or read. One made by
            `Data.fill_with` fills a cell for later resources.
        requires: The data cells without which the resource cannot be made: it is blocked while one of them is empty.
            Its guard is not asked before.
        optional_data: The data cells that it reads if they hold something.
        recreate: When the server refuses a change because a field is immutable, delete the object and make it anew in
            a later pass. What belongs to it (pods, data of a volume) goes with it.
        metrics_identifier: What metrics call the resource, the same for all owners; its kind in lower case by default.
    """

    guard: Guard | None
    extract: Extractor | Iterable[Extractor]
    requires: CellsArgument
    optional_data: CellsArgument
    recreate: bool
    metrics_identifier: str


@dataclass(frozen=True)
class LifecycleHandlers(Generic[M]):
    """How a resource judges its live object and how it is suspended; None where its category takes no part.

    Attributes:
        converging_status: How far the live object is; None for what is ready by existing.
        grace_status: How bad it is not to have converged; None for what is not graded.
        suspend: Records the edits that suspend the desired object, after all mutations; None for what suspension
            leaves alone.
        suspension_status: How far the live object is suspended.
        delete_on_suspend: Tell whether suspension ends in deletion.
    """

    converging_status: Callable[[Object, Operation], Convergence] | None = None
    grace_status: Callable[[Object], Grace] | None = None
    suspend: Callable[[M], None] | None = None
    suspension_status: Callable[[Object], Suspension] | None = None
    delete_on_suspend: bool = False


class Primitive(ABC, Generic[M]):
    """One desired object with its author's functions: a `konverge.primitives.resource_protocol.Resource`.

    Kinds do not derive from it directly but from their category in `konverge.primitives.kind_categories`.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are filled in.
        mutations: One or many, in order.
        handlers: The lifecycle answers.
        guard: See `CommonOptions`.
        extract: See `CommonOptions`.
        requires: See `CommonOptions`.
        optional_data: See `CommonOptions`.
        recreate: See `CommonOptions`.
        metrics_identifier: See `CommonOptions`.

    Attributes:
        produces: The cells that its extractors fill.
        requires: The cells without which it is blocked.
        optional_data: The cells that it reads if they hold something.
        recreates: Tell whether the object is made anew when an immutable field is to change.
        metrics_identifier: What metrics call it.
    """

    gvk: GroupVersionKind
    """The kind that the object must be of; a class for any kind has none, and the object says."""
    is_cluster_scoped: bool = False
    holds_secret: bool = False
    """Whether values of a Secret are in the object: set by whoever has put them there."""

    def __init__(
        self,
        obj: DesiredObject,
        *,
        mutations: Mutation[M] | Iterable[Mutation[M]] = (),
        handlers: LifecycleHandlers[M],
        guard: Guard | None = None,
        extract: Extractor | Iterable[Extractor] = (),
        requires: CellsArgument = (),
        optional_data: CellsArgument = (),
        recreate: bool = False,
        metrics_identifier: str | None = None,
    ) -> None:
        self._mutations = tuple(mutations) if isinstance(mutations, Iterable) else (mutations,)
        self._guard = guard
        self._extractors = tuple(extract) if isinstance(extract, Iterable) else (extract,)
        self._handlers = handlers
        self.produces = tuple({found.cell: None for found in self._extractors if isinstance(found, Extraction)})
        self.requires, unusable_cells = read_cells("requires", requires)
        self.optional_data, unusable_optional = read_cells("optional_data", optional_data)
        self.recreates = recreate
        fields, unusable = read_fields(obj)
        is_any_kind = not hasattr(self, "gvk")
        if is_any_kind:
            self.gvk = read_kind(fields)
        for cell in self.produces:
            cell.holds_secret |= self.gvk.is_secret
        self.key = read_key(fields)
        self.identity = format_identity(self.gvk, self.key)
        """``<apiVersion>/<kind>/<namespace>/<name>``, without the namespace when cluster-scoped."""
        self.metrics_identifier = self.gvk.kind.lower() if metrics_identifier is None else metrics_identifier
        self._baseline, unencodable = _encode_baseline(fields, self.gvk)
        functions: list[tuple[str, object]] = [
            ("guard", guard),
            ("converging_status", handlers.converging_status),
            ("grace_status", handlers.grace_status),
            ("suspend", handlers.suspend),
            ("suspension_status", handlers.suspension_status),
        ]
        given = [(name, function) for name, function in functions if function is not None]
        given += [
            ("extract", found.extractor if isinstance(found, Extraction) else found) for found in self._extractors
        ]
        misnamed = validate_identity(
            fields, self.gvk, self.key, is_cluster_scoped=self.is_cluster_scoped, is_scope_given=is_any_kind
        )
        self.errors: tuple[str, ...] = (
            *(unusable or misnamed),
            *self.validate_kind(fields),
            *unencodable,
            *validate_mutations(self._mutations),
            *(mistake for name, function in given for mistake in validate_function(name, function)),
            *unusable_cells,
            *unusable_optional,
            *validate_options(recreate, metrics_identifier),
        )

    @abstractmethod
    def create_mutator(self) -> M:
        """What the callbacks of this kind's mutations get."""

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """What is wrong with the baseline by the rules of this kind alone, one sentence each."""
        return iter(())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity})"

    @property
    def is_suspendable(self) -> bool:
        """Tell whether suspension concerns this resource at all."""
        return self._handlers.suspend is not None

    @property
    def deletes_on_suspend(self) -> bool:
        """Tell whether suspension ends in the object's deletion."""
        return self._handlers.delete_on_suspend

    def copy_baseline(self) -> Object:
        """A fresh copy of the object as it was given, before mutations.

        Raises:
            konverge.errors.BuildError: The primitive has mistakes.
        """
        if self.errors:
            raise BuildError(self.identity, self.errors)
        found: Object = msgspec.json.decode(self._baseline)
        return found

    def render(self, *, suspended: bool = False) -> Object:
        """A fresh desired object with every mutation whose gate is on, in order; suspended on request.

        Raises:
            konverge.errors.KonvergeError: A gate or a mutation failed, or the primitive has mistakes, or what came out
                is a Secret with a value that is no text.
        """
        obj = self.copy_baseline()
        if self._mutations:
            self._mutate(obj, self._mutations)
        if suspended:
            self.suspend(obj)  # in its own plan, so that no mutation's category can come after it
        if self.gvk.is_secret and (mistakes := tuple(validate_secret_values(obj))):
            raise BuildError(self.identity, mistakes)
        return obj

    def suspend(self, obj: Object) -> Object:
        """This object with the edits of suspension and no others, in place."""
        if self._handlers.suspend is not None:
            self._mutate(obj, (Mutation("suspend", self._handlers.suspend),))
        return obj

    def check_guard(self) -> GuardResult:
        """Ask the guard with a copy of the baseline; unblocked without one."""
        if self._guard is None:
            return UNBLOCKED
        with self._protect_secrets("its guard"):
            return self._guard(self.copy_baseline())

    def extract(self, live: Object) -> None:
        """Hand a private copy of the live object to each data extractor, in order."""
        if not self._extractors:
            return
        with self._protect_secrets("its extractor"):
            for extractor in self._extractors:
                extractor(copy_json(live))

    def converging_status(self, live: Object, operation: Operation) -> Convergence | None:
        """Judge the live object; None for a static resource."""
        handler = self._handlers.converging_status
        if handler is None:
            return None
        with self._protect_secrets("its converging_status"):
            return _require_answer(handler(live, operation), Convergence)

    def grace_status(self, live: Object) -> Grace | None:
        """Grade the live object after the grace period; None when the resource has no such handler."""
        handler = self._handlers.grace_status
        if handler is None:
            return None
        with self._protect_secrets("its grace_status"):
            return _require_answer(handler(live), Grace)

    def suspension_status(self, live: Object) -> Suspension:
        """How far the live object is suspended; what suspension leaves alone is suspended."""
        handler = self._handlers.suspension_status
        with self._protect_secrets("its suspension_status"):
            return Suspension(SuspensionStatus.SUSPENDED) if handler is None else handler(live)

    def registered_mutations(self) -> tuple[str, ...]:
        """The names of all mutations, in order of registration."""
        return tuple(mutation.name for mutation in self._mutations)

    def firing_set(self) -> tuple[str, ...]:
        """The names of those whose gate is on.

        Raises:
            konverge.errors.KonvergeError: A gate failed.
        """
        return firing_set(self._mutations, identity=self.identity)

    def _protect_secrets(self, what: str) -> AbstractContextManager[None]:
        """Where the author's function handles a Secret's values, its errors may quote them."""
        return wrap_author_errors(what, is_withheld=True) if handles_secret(self) else nullcontext()

    def _mutate(self, obj: Object, mutations: Sequence[Mutation[M]]) -> None:
        apply_mutations(obj, mutations, self.create_mutator, identity=self.identity, is_secret=handles_secret(self))
        # The engine reads, records and deletes by the key it knows; an object that slipped away would be orphaned.
        if read_key(obj) != self.key:
            raise KonvergeError(
                f"failed to mutate resource {self.identity}: a mutation changed the object's key to {read_key(obj)}; "
                "make another primitive for another object"
            )


def _require_answer(answer: A, expected: type) -> A:
    """What a function said. A None would read as "takes no part", which is ready."""
    if answer is None:
        raise KonvergeError(f"expected a {expected.__name__}, found None; is a return missing?")
    return answer


def _encode_baseline(fields: Mapping[str, Any], gvk: GroupVersionKind) -> tuple[bytes, list[str]]:
    """The baseline as JSON text with its kind in front, or why it is no JSON."""
    kind = {"apiVersion": gvk.api_version, "kind": gvk.kind}
    try:
        return encode_json({**kind, **fields, **kind}), []
    except (TypeError, ValueError, RecursionError) as error:
        # A ValueError quotes the text that is no Unicode; a TypeError names a type.
        reason = str(error) if isinstance(error, TypeError) else type(error).__name__
        return b"", [f"it is no JSON object: {reason}"]
