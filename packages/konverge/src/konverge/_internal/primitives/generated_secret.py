"""GeneratedSecret: a Secret whose values konverge makes once and keeps."""

from __future__ import annotations

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Unpack

from konverge._internal.kube import Object
from konverge._internal.mutation import Mutation, wrap_author_errors
from konverge._internal.primitives.argument_validation import validate_function
from konverge._internal.primitives.data_cells import Data
from konverge._internal.primitives.field_access import read_entries
from konverge._internal.primitives.generated_values import GeneratedValue
from konverge._internal.primitives.primitive import CommonOptions, DesiredObject, Extractor
from konverge._internal.primitives.secret import Secret, SecretMutator
from konverge._internal.primitives.value_generation import (
    ValuePlan,
    build_stamps,
    compute_rotation_time,
    find_rotation_request,
    read_value,
)
from konverge.clock import Entropy
from konverge.errors import KonvergeError

__all__ = ["PLACEHOLDER", "GeneratedData", "GeneratedSecret"]

PLACEHOLDER = "<generated>"
"""The value in a preview, which makes none."""

_MIN_PERIOD = timedelta(minutes=1)


class GeneratedData(Secret):
    """What Secrets with generated values have in common (`konverge._internal.primitives.value_generation`).

    Args:
        obj: The desired baseline.
        keys: The keys of the generated values.
        cells: The data cells to fill with values, by key.
        rotation: See `GeneratedSecret`.
        mutations: One mutation or several, in order. They see the values.
        **common: The `CommonOptions`.
    """

    guards_values = True

    def __init__(
        self,
        obj: DesiredObject,
        *,
        keys: tuple[str, ...],
        cells: Mapping[str, Data[str]],
        rotation: str,
        mutations: Mutation[SecretMutator] | Iterable[Mutation[SecretMutator]],
        **common: Unpack[CommonOptions],
    ) -> None:
        given = common.get("extract", ())
        extractors: list[Extractor] = [*given] if isinstance(given, Iterable) else [given]
        named: object = cells
        cell_errors = [] if isinstance(named, Mapping) else [f"cells: expected a mapping, found {type(cells).__name__}"]
        for key, cell in (cells if isinstance(named, Mapping) else {}).items():
            if not isinstance(cell, Data):
                cell_errors.append(f"cells[{key!r}]: expected Data, found {type(cell).__name__}")
            else:
                extractors.append(cell.fill_with(_TextReader(key)))
        options: CommonOptions = {**common, "extract": extractors}
        super().__init__(obj, mutations=mutations, **options)
        self.keys = keys
        self._rotation = rotation
        self.errors: tuple[str, ...] = (*self.errors, *cell_errors, *_validate_rotation(rotation))

    @property
    def generation(self) -> GeneratedData:
        """The part that makes values once (`konverge._internal.primitives.value_generation.ValueGeneration`)."""
        return self

    @abstractmethod
    def plan_values(self, live: Object | None, now: datetime) -> ValuePlan:
        """Decide which values stay and which are made."""

    @abstractmethod
    def make_values(self, keys: Iterable[str], entropy: Entropy, now: datetime) -> dict[str, bytes]:
        """Make new values for the keys."""

    def stamp_values(self, live: Object | None, now: datetime) -> dict[str, str]:
        """Return the annotations for values that are made now."""
        return build_stamps(live, self._rotation, now)

    def render(self, *, suspended: bool = False) -> Object:
        """Return the desired object with placeholders in place of the values, for previews and golden files.

        Raises:
            konverge.errors.KonvergeError: See `konverge.primitives.Primitive.render`.
        """
        return self.render_values(dict.fromkeys(self.keys, PLACEHOLDER.encode()), {})

    def render_values(self, values: Mapping[str, bytes], stamps: Mapping[str, str]) -> Object:
        """Return the desired object with these values.

        Raises:
            konverge.errors.KonvergeError: See `konverge.primitives.Primitive.render`; or the function for derived
                values failed.
        """
        obj = self.copy_baseline()
        obj["data"] = {**(obj.get("data") or {}), **{key: b64encode(value).decode() for key, value in values.items()}}
        if stamps:
            annotations = obj["metadata"].get("annotations") or {}
            obj["metadata"]["annotations"] = {**annotations, **stamps}
        if derived := self.derive_values(values):
            obj["stringData"] = {**(obj.get("stringData") or {}), **derived}
        return self.render_mutations(obj)

    def derive_values(self, values: Mapping[str, bytes]) -> dict[str, str]:
        """Return the entries that are computed from the values in each reconcile (default: none)."""
        return {}


class GeneratedSecret(GeneratedData):
    """A Secret whose values are made once: passwords, keys, random names.

    ::

        password: Data[str] = Data("password")
        GeneratedSecret(
            {"metadata": {"name": "db", "namespace": "shop"}, "stringData": {"username": "app"}},
            values={"password": Generated.password(length=32)},
            derive=lambda values: {"url": f"postgres://app:{values['password']}@db/app"},
            cells={"password": password},
            rotate_after=timedelta(days=90),
        )

    A value is made when the Secret has none, and stays over restarts, crashes and changes of its shape. A deleted
    Secret, or a removed value, gets new values, which an event reports. A value that another client writes stays. An
    existing Secret of another client blocks the component; with `konverge.options.adopt`, its values stay.

    Args:
        obj: The desired baseline; copied. It can have further, fixed entries.
        values: The shapes of the values by key; see `konverge.primitives.Generated`.
        derive: Gets the values that are text, by key, and returns further entries for ``stringData``. It runs in every
            reconcile, so its result changes with the author's code; keep it free of side effects. In a preview each
            value is ``<generated>``.
        cells: Data cells that get values, by key; also of fixed and derived entries.
        rotate_after: The age at which all values are made again, at least a minute (default: never).
        rotation: Any text; all values are made again when it changes to another text that is not empty.
        mutations: One mutation or several, in order. They see the values.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        values: Mapping[str, GeneratedValue],
        derive: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None,
        cells: Mapping[str, Data[str]] | None = None,
        rotate_after: timedelta | None = None,
        rotation: str = "",
        mutations: Mutation[SecretMutator] | Iterable[Mutation[SecretMutator]] = (),
        **common: Unpack[CommonOptions],
    ) -> None:
        given = _read_mapping(values)
        self._shapes = {key: shape for key, shape in given.items() if isinstance(shape, GeneratedValue)}
        self._derive = derive
        self._rotate_after = rotate_after
        keys = tuple(self._shapes)
        super().__init__(obj, keys=keys, cells=cells or {}, rotation=rotation, mutations=mutations, **common)
        fixed = {} if self.errors else self.copy_baseline()
        self.errors: tuple[str, ...] = (
            *self.errors,
            *_validate_values(given, fixed),
            *_validate_period(rotate_after),
            *(validate_function("derive", derive) if derive is not None else ()),
        )
        if fixed.get("immutable") and (rotate_after is not None or rotation):
            # The server refuses new values in an immutable Secret.
            self.recreates = True

    def plan_values(self, live: Object | None, now: datetime) -> ValuePlan:
        """Decide which values stay and which are made."""
        if live is None:
            return ValuePlan({}, self.keys)
        values = {key: read_value(live, key) for key in self.keys}
        kept = {key: value for key, value in values.items() if value is not None}
        missing = tuple(key for key in self.keys if key not in kept)
        due = None
        if kept:
            if reason := find_rotation_request(live, self._rotation):
                return ValuePlan({}, self.keys, reason)
            if self._rotate_after is not None:
                due = compute_rotation_time(live, self._rotate_after)
                if due is None or due <= now:
                    return ValuePlan({}, self.keys, f"they are older than {self._rotate_after}")
        notices = [
            f"{key} has another shape than {self._shapes[key].shape}, and stays until its next rotation"
            for key, value in kept.items()
            if not self._shapes[key].matches(value)
        ]
        return ValuePlan(kept, missing, "", due, build_stamps(live, self._rotation, None), tuple(notices))

    def make_values(self, keys: Iterable[str], entropy: Entropy, now: datetime) -> dict[str, bytes]:
        """Make new values for the keys."""
        return {key: self._shapes[key].make(entropy) for key in keys}

    def derive_values(self, values: Mapping[str, bytes]) -> dict[str, str]:
        """Call the author's function with the values that are text.

        Raises:
            konverge.errors.KonvergeError: The function failed, or returned something else than texts by new keys. The
                message contains no value.
        """
        if self._derive is None:
            return {}
        texts = {key: text for key, value in values.items() if (text := _decode_text(value)) is not None}
        with wrap_author_errors(f"failed to derive values of {self.identity}", is_withheld=True):
            derived: object = self._derive(texts)
        if not isinstance(derived, Mapping) or not all(
            isinstance(key, str) and isinstance(text, str) for key, text in derived.items()
        ):
            raise KonvergeError(
                f"failed to derive values of {self.identity}: expected a mapping of texts, found another value"
            )
        if twice := sorted(derived.keys() & self._shapes.keys()):
            raise KonvergeError(
                f"failed to derive values of {self.identity}: expected other keys than those of the generated values, "
                f"found {', '.join(twice)}"
            )
        return dict(derived)


class _TextReader:
    """Reads an entry of the live Secret as text; None if it is absent.

    Args:
        key: The key of the entry.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, live: Object) -> str | None:
        value = read_value(live, self._key)
        if value is None:
            return None
        text = _decode_text(value)
        if text is None:
            raise KonvergeError(f"data[{self._key!r}]: expected UTF-8 text for a data cell, found other bytes")
        return text


def _decode_text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _read_mapping(values: object) -> Mapping[str, object]:
    return values if isinstance(values, Mapping) else {}


def _validate_values(values: Mapping[str, object], fixed: Mapping[str, Any]) -> Iterator[str]:
    if not values:
        yield "values: expected at least one generated value, found none; use Secret for fixed values"
    for key, shape in values.items():
        if not isinstance(shape, GeneratedValue):
            yield f"values[{key!r}]: expected a shape such as Generated.password(), found {type(shape).__name__}"
        else:
            yield from (f"values[{key!r}]: {error}" for error in shape.errors)
        for field in ("data", "stringData"):
            if any(key == name for name, _ in read_entries(fixed, field)):
                yield f"values[{key!r}]: {field} has the key too; expected either a fixed or a generated value"


def _validate_rotation(rotation: object) -> Iterator[str]:
    if not isinstance(rotation, str):
        yield f"rotation: expected a string, found {type(rotation).__name__}"


def _validate_period(period: object) -> Iterator[str]:
    if period is None:
        return
    if not isinstance(period, timedelta):
        yield f"rotate_after: expected a timedelta, found {type(period).__name__}"
    elif period < _MIN_PERIOD:
        yield f"rotate_after: expected a minute or more, found {period}"
