"""Conversion of plain values to the model; it collects every error with its position and continues.

The types of the model are the only description of the format, read through `msgspec.inspect`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from konverge._internal.message_text import quote
from konverge_box._internal.file.validation_errors import Path, format_hint
from konverge_box._internal.file.yaml_source import YamlSource

__all__ = ["BAD", "StructReader", "describe_type", "has_expression"]

S = TypeVar("S", bound=msgspec.Struct)


class _BadValue:
    """The type of the marker `BAD`."""

    def __repr__(self) -> str:
        return "BAD"


BAD: Any = _BadValue()
"""Marks a value that could not be read; its error is collected."""

_compiled = cache(re.compile)


def has_expression(text: str) -> bool:
    """Tell whether a string contains template syntax."""
    return "{{" in text or "{%" in text


def describe_type(value: Any) -> str:
    """Return the type of a value in words, never the value itself: it may be secret."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "an expression" if has_expression(value) else "a string"
        case list():
            return "a list"
    return "a mapping"


class StructReader:
    """Reader for the values of one document.

    Args:
        source: The document, which collects the errors.
        by_hand: Functions that read structs whose form in the file differs from the model.
    """

    def __init__(self, source: YamlSource, by_hand: Mapping[type, Callable[[Any, Path], Any]]) -> None:
        self.source = source
        self._by_hand = by_hand

    def read_struct(self, cls: type[S], value: Any, path: Path, *, also: tuple[str, ...] = ()) -> Any:
        """Return the struct, or `BAD` if anything in it is invalid.

        Args:
            cls: The type of the struct.
            value: The plain value.
            path: The path of the value in the file.
            also: Further fields that are allowed; the caller reads them.
        """
        if not isinstance(value, dict):
            self.source.add_error(path, f"expected a mapping, found {describe_type(value)}")
            return BAD
        fields = _list_fields(cls)
        values: dict[str, Any] = {}
        for name, each in value.items():
            field = fields.get(name)
            if field is not None:
                values[field.name] = self.read_value(field.type, each, (*path, name))
            elif name not in also:
                self.source.add_error((*path, name), f"unknown field{format_hint(name, [*fields, *also])}")
        missing = [name for name, field in fields.items() if field.required and name not in value]
        for name in missing:
            self.source.add_error(path, f"{name} is missing")
        if missing or any(each is BAD for each in values.values()):
            return BAD
        return cls(**values)

    def read_value(self, kind: inspect.Type, value: Any, path: Path) -> Any:
        """Return the value as the type describes it, or `BAD`."""
        expected = ""
        while isinstance(kind, inspect.Metadata):
            expected = str((kind.extra_json_schema or {}).get("description", "")) or expected
            kind = kind.type
        match kind:
            case inspect.AnyType():
                return value
            case inspect.StructType():
                by_hand = self._by_hand.get(kind.cls)
                return by_hand(value, path) if by_hand is not None else self.read_struct(kind.cls, value, path)
            case inspect.VarTupleType():
                return self._read_list(kind, value, path)
            case inspect.DictType():
                return self._read_mapping(kind, value, path)
            case inspect.UnionType():
                return self._read_union(kind, value, path)
            case inspect.LiteralType():
                if isinstance(value, str) and value in kind.values:
                    return value
                words = [str(each) for each in kind.values]
                found = quote(value) if isinstance(value, str) else describe_type(value)
                near = format_hint(value, words) if isinstance(value, str) else ""
                self.source.add_error(
                    path, f"expected {_join_with_or(words)}, found {found}{near if 'mean' in near else ''}"
                )
                return BAD
        return self._read_scalar(kind, value, path, expected)

    def _read_list(self, kind: inspect.VarTupleType, value: Any, path: Path) -> Any:
        if not isinstance(value, list):
            if isinstance(kind.item_type, inspect.StructType) and self._accepts_single_item(kind.item_type, value):
                value = self.read_value(kind.item_type, value, path)
                return BAD if value is BAD else (value,)
            self.source.add_error(path, f"expected a list, found {describe_type(value)}")
            return BAD
        items = [self.read_value(kind.item_type, each, (*path, index)) for index, each in enumerate(value)]
        return BAD if any(each is BAD for each in items) else tuple(items)

    def _accepts_single_item(self, item: inspect.StructType, value: Any) -> bool:
        return isinstance(value, dict) and getattr(item.cls, "MAY_STAND_ALONE", False)

    def _read_mapping(self, kind: inspect.DictType, value: Any, path: Path) -> Any:
        if not isinstance(value, dict):
            self.source.add_error(path, f"expected a mapping, found {describe_type(value)}")
            return BAD
        values: dict[str, Any] = {}
        for name, each in value.items():
            at = (*path, name)
            if self.read_value(kind.key_type, name, at) is not BAD:
                values[name] = self.read_value(kind.value_type, each, at)
            else:
                values[name] = BAD
        return BAD if any(each is BAD for each in values.values()) else values

    def _read_union(self, kind: inspect.UnionType, value: Any, path: Path) -> Any:
        for each in kind.types:
            if _is_of_type(each, value):
                return self.read_value(each, value, path)
        names = [_format_type(each) for each in kind.types if not isinstance(each, inspect.NoneType)]
        self.source.add_error(
            path, f"expected {_join_with_or(list(dict.fromkeys(names)))}, found {describe_type(value)}"
        )
        return BAD

    def _read_scalar(self, kind: inspect.Type, value: Any, path: Path, expected: str) -> Any:
        if not _is_of_type(kind, value):
            self.source.add_error(path, f"expected {expected or _format_type(kind)}, found {describe_type(value)}")
            return BAD
        if isinstance(kind, inspect.StrType) and kind.pattern and not _compiled(kind.pattern).match(value):
            found = "an expression" if has_expression(value) else quote(value)
            self.source.add_error(path, f"expected {expected}, found {found}")
            return BAD
        if isinstance(kind, inspect.IntType | inspect.FloatType) and not (
            (kind.ge is None or value >= kind.ge) and (kind.le is None or value <= kind.le)
        ):
            least = "" if kind.ge is None else f" from {kind.ge:g}"
            most = "" if kind.le is None else f" up to {kind.le:g}"
            self.source.add_error(path, f"expected {_format_type(kind)}{least}{most}, found {value}")
            return BAD
        return value


@cache
def _list_fields(cls: type) -> dict[str, inspect.Field]:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field for field in info.fields}


def _is_of_type(kind: inspect.Type, value: Any) -> bool:
    """Tell whether a value has the outer form of a type; its content is checked separately."""
    match kind:
        case inspect.Metadata():
            return _is_of_type(kind.type, value)
        case inspect.StrType() | inspect.LiteralType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case inspect.VarTupleType():
            return isinstance(value, list)
        case inspect.DictType() | inspect.StructType():
            return isinstance(value, dict)
    return True


def _format_type(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata():
            return _format_type(kind.type)
        case inspect.StrType():
            return "a string"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.VarTupleType():
            return "a list"
        case inspect.LiteralType():
            return _join_with_or([str(each) for each in kind.values])
    return "a mapping"


def _join_with_or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
