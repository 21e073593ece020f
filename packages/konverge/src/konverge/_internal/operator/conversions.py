"""Conversions between the versions of a kind: author functions on classes, applied to JSON objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from konverge._internal.component import TimeLimit, call_with_limit
from konverge._internal.crd import decode, encode, find_definition
from konverge._internal.kube import Object, RestMapping
from konverge._internal.runtime.webhooks import AdmissionDeniedError, ConversionHook, HandlerError
from konverge.errors import BuildError, FunctionTimeoutError

__all__ = ["ConversionRegistry"]

_MISSING: Any = object()
# Metadata that a conversion must not change (apiextensions-apiserver, validateConvertedObject); the server restores
# the rest.
_FIXED_METADATA = ("name", "namespace", "uid")
_FREE_METADATA = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class _ConversionStep:
    target: type[Any]
    function: Callable[[Any], Any]
    name: str


class ConversionRegistry:
    """The conversion functions of one kind.

    Args:
        mapping: The kind, in one of its versions.
    """

    def __init__(self, mapping: RestMapping) -> None:
        self._mapping = mapping
        self._classes: dict[str, type[Any]] = {}
        self._steps: dict[type[Any], list[_ConversionStep]] = {}

    def add(self, source: type[Any], target: type[Any], function: Callable[[Any], Any], name: str) -> None:
        """Add a conversion function.

        Raises:
            BuildError: The classes are not two versions of this kind, or have a function already.
        """
        old, new = find_definition(source), find_definition(target)
        mistakes = []
        if old.gvk.group_kind != new.gvk.group_kind or old.gvk == new.gvk:
            mistakes.append(f"expected two versions of one kind, found {old.gvk} and {new.gvk}")
        for definition in (old, new):
            registered = self._classes.get(definition.gvk.api_version, definition.cls)
            if registered is not definition.cls:
                mistakes.append(f"{definition.gvk} is the class {registered.__qualname__} already")
        if any(step.target is target for step in self._steps.get(source, ())):
            mistakes.append(f"{old.gvk.version} to {new.gvk.version} has a function already")
        if mistakes:
            raise BuildError(f"conversion {name}", mistakes)
        for definition in (old, new):
            self._classes[definition.gvk.api_version] = definition.cls
        self._steps.setdefault(source, []).append(_ConversionStep(target, function, name))

    def validate(self) -> list[str]:
        """List the pairs of versions without a conversion path."""
        classes = dict(self._classes)
        for cls in self._classes.values():
            for definition in find_definition(cls).versions:
                classes.setdefault(definition.gvk.api_version, definition.cls)
        return [
            f"{self._mapping.gvk.kind}: no functions lead from {source} to {target}"
            for source, cls in classes.items()
            for target, other in classes.items()
            if self._find_path(cls, other) is None
        ]

    def build_hook(self, limit: TimeLimit | None = None) -> ConversionHook:
        """Build the conversion webhook of the kind.

        Args:
            limit: The time limit of each function between two waits; None is without a limit.
        """
        return ConversionHook(self._mapping, partial(self.convert, limit=limit))

    async def convert(self, obj: Object, api_version: str, *, limit: TimeLimit | None = None) -> Object:
        """Convert an object to another version.

        Args:
            obj: The object.
            api_version: The API version of the result.
            limit: The time limit of each function between two waits; None is without a limit.

        Raises:
            DecodeError: The object does not fit the class of its version.
            HandlerError: There is no class for a version, or a function broke its contract.
        """
        if obj["apiVersion"] == api_version:
            return obj
        source, target = self._find_class(obj["apiVersion"]), self._find_class(api_version)
        path = self._find_path(source, target)
        if path is None:
            raise HandlerError(f"no functions lead from {obj['apiVersion']} to {api_version}")
        metadata = obj.get("metadata") or {}
        named = obj if "name" in metadata else {**obj, "metadata": {**metadata, "name": ""}}
        resource = call_with_limit(limit, decode, source, named)
        before = encode(resource)["metadata"]
        for step in path:
            resource = await _run_step(step, resource, limit)
        last = path[-1].name
        try:
            result = call_with_limit(limit, encode, resource)
        except Exception as error:
            raise HandlerError(
                f"{last} returned a value that cannot be encoded as JSON ({type(error).__name__})"
            ) from error
        result["metadata"] = _merge_metadata(metadata, before, result["metadata"], last)
        _carry_over(obj, result, find_definition(source).schema, find_definition(target).schema)
        return result

    def _find_class(self, api_version: str) -> type[Any]:
        cls = self._classes.get(api_version)
        if cls is None:
            versions = ", ".join(sorted(self._classes))
            raise HandlerError(f"no class is {self._mapping.gvk.kind} of {api_version}; expected one of {versions}")
        return cls

    def _find_path(self, source: type[Any], target: type[Any]) -> list[_ConversionStep] | None:
        """Find the shortest path from one class to the other: directly, or through the storage version."""
        paths: dict[type[Any], list[_ConversionStep]] = {source: []}
        ends = [source]
        for end in ends:
            for step in self._steps.get(end, ()):
                if step.target not in paths:
                    paths[step.target] = [*paths[end], step]
                    ends.append(step.target)
        return paths.get(target)


async def _run_step(step: _ConversionStep, resource: Any, limit: TimeLimit | None) -> Any:
    try:
        returned = call_with_limit(limit, step.function, resource)
        returned = await returned if inspect.isawaitable(returned) else returned
    except (AdmissionDeniedError, HandlerError):
        raise
    except FunctionTimeoutError as error:
        raise HandlerError(f"{step.name} did not return in time; the operator's log has its position") from error
    except Exception as error:
        # Without the text of the error: it can contain a value of the object.
        raise HandlerError(
            f"{step.name} failed with {type(error).__name__}; the operator's log has the error"
        ) from error
    if not isinstance(returned, step.target):
        raise HandlerError(f"{step.name} returned {type(returned).__name__}; expected {step.target.__name__}")
    return returned


def _merge_metadata(whole: Mapping[str, Any], before: Object, after: Object, name: str) -> Object:
    """Merge the labels and annotations of the result into the object's metadata."""
    for field in _FIXED_METADATA:
        if after.get(field, _MISSING) not in (before.get(field, _MISSING), _MISSING):
            raise HandlerError(f"{name} changed metadata.{field}; only labels and annotations may change")
    fixed = {field: value for field, value in whole.items() if field not in _FREE_METADATA}
    return {**fixed, **{field: after[field] for field in _FREE_METADATA if field in after}}


def _carry_over(obj: Object, result: Object, source: Object, target: Object) -> None:
    """Copy the fields that neither class declares into the result, because no function can convert them."""
    for field in ("spec", "status"):
        original = obj.get(field)
        if isinstance(original, Mapping):
            converted = dict(result.get(field) or {})
            _keep_undeclared(original, converted, _find_property(source, field), _find_property(target, field))
            if converted or field in result:
                result[field] = converted


def _keep_undeclared(original: Mapping[str, Any], converted: Object, source: Object, target: Object) -> None:
    for name, value in original.items():
        declared = source["properties"].get(name), target["properties"].get(name)
        if declared == (None, None):
            converted.setdefault(name, value)
        elif isinstance(value, Mapping) and isinstance(converted.get(name), Mapping):
            below = [schema for schema in declared if schema is not None and "properties" in schema]
            if len(below) == len(declared):
                inner = dict(converted[name])
                _keep_undeclared(value, inner, *below)
                converted[name] = inner


def _find_property(schema: Object, field: str) -> Object:
    """Return the schema of a part of the object; without fields if the class does not have the part."""
    part: Object = schema.get("properties", {}).get(field) or {}
    return part if "properties" in part else {"properties": {}}
