"""Sample objects of a custom resource from its schema, for code that depends on an object before one exists.

There is a minimal and a full object, and variants of both with one changed field: inverted booleans, each value of an
enumeration, optional fields present and absent, empty and non-empty strings and lists, numbers at their minimum. Pairs
of these changes follow, up to the limit. The result is deterministic.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, TypeAlias

from konverge._internal.crd.definition import ResourceDefinition
from konverge._internal.kube import Object
from konverge._internal.kube.re2 import MatchTooCostlyError, Pattern, compile_pattern

__all__ = ["DEFAULT_LIMIT", "SampleObjects", "build_sample_objects"]

DEFAULT_LIMIT = 256
"""Maximum number of sample objects."""

_NAME = "sample"
_MAX_DEPTH = 12
# For one text: there are some thirty for each string of a schema, so each gets a few milliseconds.
_MAX_VISITS = 20_000

_FORMATS = {
    "byte": "YQ==",
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "duration": "1m",
    "uuid": "00000000-0000-0000-0000-000000000001",
}
# Frequent patterns of custom resources: names, images, hosts, addresses, quantities, schedules, versions.
_TEXTS = (
    _NAME,
    "Sample",
    "SAMPLE",
    "1",
    "100m",
    "1Gi",
    "1.0.0",
    "v1",
    "v1.0.0",
    "1m",
    "50%",
    "sample.example.com",
    "sample.example.com/sample:1",
    "https://sample.example.com/",
    "sample@example.com",
    "/sample",
    "10.0.0.1",
    "10.0.0.0/24",
    "sample:1",
    "sample/sample",
    "key=value",
    "0 0 * * *",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "a" * 32,
    "0" * 40,
    "0" * 64,
)

Step: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class SampleObjects:
    """Sample objects, and one sentence for each gap in them."""

    objects: tuple[Object, ...]
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _FieldChoice:
    """One field with one value, or the absence of the field."""

    path: tuple[Step, ...]
    value: Any
    is_absent: bool = False


def build_sample_objects(definition: ResourceDefinition, limit: int = DEFAULT_LIMIT) -> SampleObjects:
    """Return objects of the kind that differ in the fields of its schema.

    Rules and validators do not run: the class may reject an object.

    Args:
        definition: The kind.
        limit: The maximum number of objects.
    """
    spec = definition.schema["properties"]["spec"]
    maker = _SampleBuilder()
    least, most = maker.build_smallest(spec, "spec"), maker.build_largest(spec, "spec")
    choices = list(maker.iter_choices(spec, (), "spec"))
    variants: list[Any] = []
    for made in islice(_iter_variants(spec, least, most, choices, maker), 4 * limit):
        if len(variants) == limit:
            break
        if made not in variants:
            variants.append(made)
    gaps = list(dict.fromkeys(maker.gaps))
    if 2 * len(choices) + 2 > 4 * limit:
        gaps.append(f"spec: too many fields to vary each one with {limit} samples")
    return SampleObjects(tuple(_build_object(definition, found) for found in variants), tuple(gaps))


def _build_object(definition: ResourceDefinition, spec: Any) -> Object:
    metadata: Object = {
        "name": _NAME,
        "uid": "00000000-0000-0000-0000-000000000001",
        "generation": 1,
        "resourceVersion": "1",
    }
    if definition.namespaced:
        metadata["namespace"] = _NAME
    gvk = definition.gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": copy.deepcopy(spec)}


def _iter_variants(
    spec: Object, least: Any, most: Any, choices: list[_FieldChoice], maker: _SampleBuilder
) -> Iterator[Any]:
    yield least
    yield most
    for base in (least, most):
        for choice in choices:
            yield _apply_choice(base, spec, [choice], maker)
    for pair in combinations(choices, 2):
        if pair[0].path != pair[1].path:
            yield _apply_choice(least, spec, list(pair), maker)


def _apply_choice(base: Any, schema: Object, choices: list[_FieldChoice], maker: _SampleBuilder) -> Any:
    made = copy.deepcopy(base)
    for choice in choices:
        made = _set_field(made, schema, choice.path, choice, maker)
    return made


def _set_field(value: Any, schema: Object, path: tuple[Step, ...], choice: _FieldChoice, maker: _SampleBuilder) -> Any:
    """Return the value with the choice at the path; missing parents get their smallest value."""
    if not path:
        return copy.deepcopy(choice.value)
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = value if isinstance(value, list) and value else [maker.build_smallest(schema["items"], "")]
        return [_set_field(items[0], schema["items"], rest, choice, maker), *items[1:]]
    fields = dict(value) if isinstance(value, dict) else {}
    inner = schema["properties"][step] if step in schema.get("properties", {}) else schema["additionalProperties"]
    if not rest and choice.is_absent:
        fields.pop(step, None)
        return fields
    fields[step] = _set_field(fields.get(step, maker.build_smallest(inner, "")), inner, rest, choice, maker)
    return fields


class _SampleBuilder:
    """Builds values of schemas and records the gaps."""

    def __init__(self) -> None:
        self.gaps: list[str] = []

    def build_smallest(self, schema: Object, path: str) -> Any:
        """Return the smallest value: defaults, only required fields, empty lists."""
        if "default" in schema:
            return copy.deepcopy(schema["default"])
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                required = schema.get("required", ())
                found = {name: self.build_smallest(schema["properties"][name], f"{path}.{name}") for name in required}
                if schema.get("x-kubernetes-embedded-resource"):
                    found |= _build_embedded_object()
                return found
            case "array":
                return [self.build_smallest(schema["items"], f"{path}[]") for _ in range(schema.get("minItems", 0))]
            case "boolean":
                return False
            case "integer" | "number":
                return _smallest_number(schema)
            case "string":
                return self._build_text(schema, path)
        return 1 if schema.get("x-kubernetes-int-or-string") else {}

    def build_largest(self, schema: Object, path: str, depth: int = 0) -> Any:
        """Return the largest value: every field, non-empty lists and strings, every boolean true."""
        if depth > _MAX_DEPTH:
            return self.build_smallest(schema, path)
        if "enum" in schema:
            return schema["enum"][-1]
        match schema.get("type"):
            case "object":
                found = {
                    name: self.build_largest(inner, f"{path}.{name}", depth + 1)
                    for name, inner in schema.get("properties", {}).items()
                }
                if "additionalProperties" in schema:
                    found[_NAME] = self.build_largest(schema["additionalProperties"], f"{path}{{}}", depth + 1)
                if schema.get("x-kubernetes-embedded-resource"):
                    found |= _build_embedded_object()
                return found
            case "array":
                count = max(1, schema.get("minItems", 0))
                return [self.build_largest(schema["items"], f"{path}[]", depth + 1) for _ in range(count)]
            case "boolean":
                return True
            case "integer" | "number":
                return schema.get("default") or _nonzero_number(schema)
            case "string":
                return self._build_text(schema, path)
        return schema.get("default") or self.build_smallest(schema, path)

    def iter_choices(self, schema: Object, path: tuple[Step, ...], where: str) -> Iterator[_FieldChoice]:
        """Yield every choice for one field within the schema."""
        if len(path) > _MAX_DEPTH:
            return
        match schema.get("type"):
            case "object":
                required = schema.get("required", ())
                for name, inner in schema.get("properties", {}).items():
                    here = (*path, name)
                    if name not in required:
                        yield _FieldChoice(here, None, is_absent=True)
                    yield from (
                        _FieldChoice(here, value) for value in self._list_alternatives(inner, f"{where}.{name}")
                    )
                    yield from self.iter_choices(inner, here, f"{where}.{name}")
                if "additionalProperties" in schema:
                    yield from self.iter_choices(schema["additionalProperties"], (*path, _NAME), f"{where}{{}}")
            case "array":
                yield from (
                    _FieldChoice((*path, 0), value) for value in self._list_alternatives(schema["items"], f"{where}[]")
                )
                yield from self.iter_choices(schema["items"], (*path, 0), f"{where}[]")

    def _list_alternatives(self, schema: Object, path: str) -> list[Any]:
        if "enum" in schema:
            return list(schema["enum"])
        match schema.get("type"):
            case "boolean":
                return [True, False]
            case "integer" | "number":
                return [_smallest_number(schema), _nonzero_number(schema)]
            case "string":
                empty = [""] if not schema.get("minLength") and "pattern" not in schema else []
                return (
                    [*empty, self._build_text(schema, path)]
                    if "format" not in schema
                    else [self._build_text(schema, path)]
                )
            case "array":
                return [*([] if schema.get("minItems") else [[]]), self.build_largest(schema, path)]
            case "object":
                return [self.build_smallest(schema, path), self.build_largest(schema, path)]
        return [1, "50%"] if schema.get("x-kubernetes-int-or-string") else [{}]

    def _build_text(self, schema: Object, path: str) -> str:
        if schema.get("default"):
            return str(schema["default"])
        shortest, longest = schema.get("minLength", 0), schema.get("maxLength", 1 << 16)
        if "format" in schema:
            return _FORMATS.get(schema["format"], _NAME)
        pattern = compile_pattern(schema.get("pattern", ""))
        for text in (*_TEXTS, _NAME.ljust(shortest, "s"), _NAME[:longest]):
            if shortest <= len(text) <= longest and pattern is not None and _matches(pattern, text):
                return text
        if path:
            self.gaps.append(f"{path}: no sample string fits its pattern and its length")
        return _NAME


def _matches(pattern: Pattern, text: str) -> bool:
    try:
        return pattern.matches(text, maximum_visits=_MAX_VISITS)
    except MatchTooCostlyError:
        return False


def _smallest_number(schema: Object) -> int | float:
    least = schema.get("minimum", min(0, schema.get("maximum", 0)))
    step = schema.get("multipleOf", 1)
    found: int | float = least + step if schema.get("exclusiveMinimum") else least
    return found


def _nonzero_number(schema: Object) -> int | float:
    step = schema.get("multipleOf", 1)
    found: int | float = min(max(_smallest_number(schema), step), schema.get("maximum", step))
    return found


def _build_embedded_object() -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _NAME}}
