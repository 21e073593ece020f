"""The base class of all primitives, with everything that kinds share.

A primitive is made from a desired object and functions of its author. The constructor validates both but does not
raise. It collects the errors in `Primitive.errors`: the builder of a component reports all errors of all resources at
once, and an exception from the first constructor would hide the others. The use of a primitive with errors raises them.

The baseline is stored as JSON text. This makes the value immutable and finds values that are not JSON in the
constructor. Each caller of `copy_baseline` gets a private object in a tenth of the time of a deep copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypedDict, TypeVar

import msgspec

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_identity
from konverge._internal.mutation import (
    Mutation,
    Mutator,
    apply_mutations,
    copy_json,
    encode_json,
    firing_set,
    wrap_author_errors,
)
from konverge._internal.primitives.argument_validation import (
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
from konverge._internal.primitives.data_cells import Data, Extraction
from konverge._internal.primitives.resource_protocol import (
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
from konverge._internal.primitives.value_generation import ValueGeneration
from konverge.errors import BuildError, KonvergeError

__all__ = ["CommonOptions", "DesiredObject", "Extractor", "LifecycleHandlers", "Primitive"]

M = TypeVar("M", bound=Mutator)
A = TypeVar("A")


class SupportsToDict(Protocol):
    """An object of another library with a conversion to JSON."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return the object in its JSON form, with the API's field names."""


DesiredObject: TypeAlias = Mapping[str, Any] | SupportsToDict
"""The desired object that a primitive accepts."""

Extractor: TypeAlias = Callable[[Object], object]
"""Gets a private copy of the live object and extracts data for later resources; its result is ignored."""


CellsArgument: TypeAlias = Data[Any] | Iterable[Data[Any]]
"""One data cell or several."""


class CommonOptions(TypedDict, total=False):
    """The keyword arguments of every primitive, whatever its category.

    Attributes:
        guard: A function that must allow the resource before it is applied or read.
        extract: One extractor or several. Each gets its own copy of the live object after each apply or read. An
            extractor made by `Data.fill_with` fills a cell for later resources.
        requires: The data cells that the resource requires: it is blocked while one of them is empty. Its guard is not
            called before.
        optional_data: The data cells that the resource reads if they are set.
        recreate: True to delete the object and create it again in a later reconcile when the server rejects a change
            of an immutable field. Its dependents (pods, the data of a volume) are deleted with it.
        metrics_identifier: The name of the resource in metrics, the same for all owners (default: the kind in lower
            case).
    """

    guard: Guard | None
    extract: Extractor | Iterable[Extractor]
    requires: CellsArgument
    optional_data: CellsArgument
    recreate: bool
    metrics_identifier: str


@dataclass(frozen=True)
class LifecycleHandlers(Generic[M]):
    """Functions that judge the live object of a resource and suspend it; None if its category has none.

    Attributes:
        converging_status: Returns the converging status of the live object; None if it is ready once it exists.
        grace_status: Returns the severity after the grace period; None without a grace status.
        suspend: Records the edits that suspend the desired object, after all mutations; None if suspension does not
            change it.
        suspension_status: Returns the progress of the suspension.
        delete_on_suspend: True if suspension ends in the deletion of the object.
    """

    converging_status: Callable[[Object, Operation], Convergence] | None = None
    grace_status: Callable[[Object], Grace] | None = None
    suspend: Callable[[M], None] | None = None
    suspension_status: Callable[[Object], Suspension] | None = None
    delete_on_suspend: bool = False


class Primitive(ABC, Generic[M]):
    """One desired object with functions of its author: a `primitives.resource_protocol.Resource`.

    Kinds derive from their category in `primitives.kind_categories`, not directly from this class.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are added.
        mutations: One mutation or several, in order.
        handlers: The lifecycle functions.
        guard: See `CommonOptions`.
        extract: See `CommonOptions`.
        requires: See `CommonOptions`.
        optional_data: See `CommonOptions`.
        recreate: See `CommonOptions`.
        metrics_identifier: See `CommonOptions`.

    Attributes:
        produces: The cells that its extractors fill.
        requires: The cells that it requires; it is blocked while one is empty.
        optional_data: The cells that it reads if they are set.
        recreates: True if the object is deleted and created again to change an immutable field.
        metrics_identifier: The name of the resource in metrics.
    """

    gvk: GroupVersionKind
    """The required kind of the object. A class for any kind has none: the kind is that of the object."""
    is_cluster_scoped: bool = False
    holds_secret: bool = False
    """True if the object contains values of a Secret; the code that inserts them sets this."""
    guards_values: bool = False
    """True if the object contains values that are made once; the code that inserts them sets this."""
    decided_on: str | None = None
    """The version of the object on which the code that inserts such values based its decision; empty for an absent
    object, None if the engine decides."""

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
        self.produces: tuple[Data[Any], ...] = tuple(
            {extractor.cell: None for extractor in self._extractors if isinstance(extractor, Extraction)}
        )
        self.requires: tuple[Data[Any], ...]
        self.optional_data: tuple[Data[Any], ...]
        self.requires, unusable_cells = read_cells("requires", requires)
        self.optional_data, unusable_optional = read_cells("optional_data", optional_data)
        self.recreates = recreate
        fields, unusable = read_fields(obj)
        is_any_kind = not hasattr(self, "gvk")
        if is_any_kind:
            self.gvk = read_kind(fields)
        for cell in self.produces:
            cell.holds_secret |= self.gvk.is_secret
        self.key: ObjectKey = read_key(fields)
        self.identity: str = format_identity(self.gvk, self.key)
        """``<apiVersion>/<kind>/<namespace>/<name>``, without the namespace if the object is cluster-scoped."""
        self.metrics_identifier: str = self.gvk.kind.lower() if metrics_identifier is None else metrics_identifier
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
            ("extract", extractor.extractor if isinstance(extractor, Extraction) else extractor)
            for extractor in self._extractors
        ]
        misnamed = validate_identity(
            fields, self.gvk, self.key, is_cluster_scoped=self.is_cluster_scoped, is_scope_given=is_any_kind
        )
        self.errors: tuple[str, ...] = (
            *(unusable or misnamed),
            *self.validate_kind(fields),
            *unencodable,
            *validate_mutations(self._mutations),
            *(error for name, function in given for error in validate_function(name, function)),
            *unusable_cells,
            *unusable_optional,
            *validate_options(recreate, metrics_identifier),
        )

    @abstractmethod
    def create_mutator(self) -> M:
        """Return a new mutator for the callback of one mutation."""

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Yield the validation errors of the baseline by the rules of this kind, one sentence each."""
        return iter(())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity})"

    @property
    def generation(self) -> ValueGeneration | None:
        """The part that makes values once; None for an object without such values."""
        return None

    @property
    def is_suspendable(self) -> bool:
        """True if suspension has an effect on this resource."""
        return self._handlers.suspend is not None

    @property
    def deletes_on_suspend(self) -> bool:
        """True if suspension ends in the deletion of the object."""
        return self._handlers.delete_on_suspend

    def copy_baseline(self) -> Object:
        """Return a new copy of the object as the author passed it, before mutations.

        Raises:
            konverge.errors.BuildError: The primitive has validation errors.
        """
        if self.errors:
            raise BuildError(self.identity, self.errors)
        baseline: Object = msgspec.json.decode(self._baseline)
        return baseline

    def render(self, *, suspended: bool = False) -> Object:
        """Return a new desired object with every mutation whose gate is enabled, in order; suspended on request.

        Raises:
            konverge.errors.KonvergeError: A gate or a mutation failed, the primitive has validation errors, or the
                result is a Secret with a value that is not a string.
        """
        return self.render_mutations(self.copy_baseline(), suspended=suspended)

    def render_mutations(self, obj: Object, *, suspended: bool = False) -> Object:
        """Apply every mutation whose gate is enabled to this object, in place and in order, and return it.

        Raises:
            konverge.errors.KonvergeError: See `render`.
        """
        if self._mutations:
            self._mutate(obj, self._mutations)
        if suspended:
            self.suspend(obj)  # in its own plan, so that no edit of a mutation comes after it
        if self.gvk.is_secret and (errors := tuple(validate_secret_values(obj))):
            raise BuildError(self.identity, errors)
        return obj

    def suspend(self, obj: Object) -> Object:
        """Apply only the edits of suspension to this object, in place, and return it."""
        if self._handlers.suspend is not None:
            self._mutate(obj, (Mutation("suspend", self._handlers.suspend),))
        return obj

    def check_guard(self) -> GuardResult:
        """Call the guard with a copy of the baseline; without a guard, return `UNBLOCKED`."""
        if self._guard is None:
            return UNBLOCKED
        with self._protect_secrets("its guard"):
            return self._guard(self.copy_baseline())

    def extract(self, live: Object) -> None:
        """Call each extractor with a private copy of the live object, in order."""
        if not self._extractors:
            return
        with self._protect_secrets("its extractor"):
            for extractor in self._extractors:
                extractor(copy_json(live))

    def converging_status(self, live: Object, operation: Operation) -> Convergence | None:
        """Return the converging status of the live object; None for a static resource."""
        handler = self._handlers.converging_status
        if handler is None:
            return None
        with self._protect_secrets("its converging_status"):
            return _require_result(handler(live, operation), Convergence)

    def grace_status(self, live: Object) -> Grace | None:
        """Return the severity after the grace period; None if the resource has no grace handler."""
        handler = self._handlers.grace_status
        if handler is None:
            return None
        with self._protect_secrets("its grace_status"):
            return _require_result(handler(live), Grace)

    def suspension_status(self, live: Object) -> Suspension:
        """Return the progress of the suspension; Suspended if suspension does not change the resource."""
        handler = self._handlers.suspension_status
        with self._protect_secrets("its suspension_status"):
            return Suspension(SuspensionStatus.SUSPENDED) if handler is None else handler(live)

    def registered_mutations(self) -> tuple[str, ...]:
        """Return the names of all mutations, in order of registration."""
        return tuple(mutation.name for mutation in self._mutations)

    def firing_set(self) -> tuple[str, ...]:
        """Return the names of the mutations whose gate is enabled.

        Raises:
            konverge.errors.KonvergeError: A gate failed.
        """
        return firing_set(self._mutations, identity=self.identity)

    def _protect_secrets(self, subject: str) -> AbstractContextManager[None]:
        """Return a context that withholds error texts if the author's function handles values of a Secret."""
        return wrap_author_errors(subject, is_withheld=True) if handles_secret(self) else nullcontext()

    def _mutate(self, obj: Object, mutations: Sequence[Mutation[M]]) -> None:
        apply_mutations(obj, mutations, self.create_mutator, identity=self.identity, is_secret=handles_secret(self))
        # The engine reads, records and deletes by the registered key; an object under another key would be orphaned.
        if read_key(obj) != self.key:
            raise KonvergeError(
                f"failed to mutate resource {self.identity}: expected the key {self.key}, found {read_key(obj)} after "
                "a mutation; declare another primitive for another object"
            )


def _require_result(result: A, expected: type) -> A:
    """Return the result of a function; None would mean "no handler", which counts as ready."""
    if result is None:
        raise KonvergeError(f"expected a {expected.__name__}, found None; is a return missing?")
    return result


def _encode_baseline(fields: Mapping[str, Any], gvk: GroupVersionKind) -> tuple[bytes, list[str]]:
    """Return the baseline as JSON text with its kind first, and an error if it is not JSON."""
    kind = {"apiVersion": gvk.api_version, "kind": gvk.kind}
    try:
        return encode_json({**kind, **fields, **kind}), []
    except (TypeError, ValueError, RecursionError) as error:
        # A ValueError quotes the text that is not Unicode; a TypeError names a type.
        reason = str(error) if isinstance(error, TypeError) else type(error).__name__
        return b"", [f"expected a JSON object: {reason}"]
