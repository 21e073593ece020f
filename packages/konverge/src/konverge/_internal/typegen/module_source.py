"""The text of a module: its imports and its classes, each after the classes that it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from konverge._internal.typegen.annotations import INDENT, Annotation, build_literal, quote_string
from konverge._internal.typegen.class_names import is_class_field_name

__all__ = ["ModuleSource", "TypedDictClass", "TypedDictField", "with_kind_fields"]

_WIDTH = 120
_TYPING = frozenset({"Any", "Literal", "Required"})


@dataclass(frozen=True, slots=True)
class TypedDictField:
    """One field of an object, by its JSON name."""

    name: str
    annotation: Annotation
    is_required: bool = False


def with_kind_fields(fields: Iterable[TypedDictField], api_version: str, kind: str) -> tuple[TypedDictField, ...]:
    """Return the fields of an object of this kind, with apiVersion, kind and metadata first."""
    by_name = {field.name: field for field in fields}
    by_name["apiVersion"] = TypedDictField("apiVersion", build_literal(api_version))
    by_name["kind"] = TypedDictField("kind", build_literal(kind))
    first = [by_name.pop(name) for name in ("apiVersion", "kind", "metadata") if name in by_name]
    return (*first, *by_name.values())


@dataclass(frozen=True, slots=True)
class TypedDictClass:
    """An object with known fields."""

    name: str
    fields: tuple[TypedDictField, ...]

    def list_references(self) -> set[str]:
        """Return the names that the types of the fields refer to."""
        return {name for field in self.fields for name in field.annotation.names}

    def render(self, defined: Iterable[str]) -> str:
        """Return the class statement, or the equivalent call if a field's name is invalid in a class statement.

        Args:
            defined: The preceding classes. A field type that refers to another class of the module is quoted.
        """
        known = set(defined)
        annotations = [(field, _quote_undefined(field, known)) for field in self.fields]
        used = {name for _, annotation in annotations for name in annotation.identifiers}
        if all(is_class_field_name(field.name) and field.name not in used for field in self.fields):
            return "\n".join(
                [
                    f"class {self.name}(TypedDict, total=False):",
                    *(_render_line(INDENT, f"{field.name}: ", annotation, "") for field, annotation in annotations),
                ]
            )
        within = INDENT * 2
        return "\n".join(
            [
                f"{self.name} = TypedDict(",
                f"{INDENT}{quote_string(self.name)},",
                f"{INDENT}{{",
                *(
                    _render_line(within, f"{quote_string(field.name)}: ", annotation, ",")
                    for field, annotation in annotations
                ),
                f"{INDENT}}},",
                f"{INDENT}total=False,",
                ")",
            ]
        )


def _quote_undefined(field: TypedDictField, defined: set[str]) -> Annotation:
    annotation = field.annotation
    later = {name for name in annotation.names if name[:1].isupper() and "." not in name} - _TYPING - defined
    if later:
        annotation = Annotation(quote_string(annotation.text))
    return Annotation("Required", (annotation,)) if field.is_required else annotation


def _render_line(indent: str, before: str, annotation: Annotation, after: str) -> str:
    room = _WIDTH - len(indent) - len(before) - len(after)
    return f"{indent}{before}{annotation.wrap(indent, room)}{after}"


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """The parts of a module's text.

    Args:
        docstring: The docstring without quotation marks.
        classes: The classes in any order.
        aliases: Names for types that are not classes of the module.
    """

    docstring: str
    classes: Sequence[TypedDictClass]
    aliases: Mapping[str, Annotation]

    def render(self) -> str:
        """Return the Python source of the module."""
        blocks = []
        defined = set(self.aliases)
        for typed_dict in self._sort_classes():
            blocks.append(typed_dict.render(defined))
            defined.add(typed_dict.name)
        aliases = [f"\n{name}: TypeAlias = {alias.text}\n" for name, alias in self.aliases.items()]
        classes = [f"\n\n{block}\n" for block in blocks]
        return "".join([f'"""{self.docstring}"""\n\n{self._render_imports()}\n', *aliases, *classes])

    def _render_imports(self) -> str:
        names = {name for each in self.classes for name in each.list_references()}
        names.update(name for alias in self.aliases.values() for name in alias.names)
        typing = names & _TYPING
        typing.update(["Required"] if any(field.is_required for each in self.classes for field in each.fields) else [])
        typing.update(["TypedDict"] if self.classes else [])
        typing.update(["TypeAlias"] if self.aliases else [])
        modules = sorted({name.partition(".")[0] for name in names if "." in name})
        lines = [f"from typing import {', '.join(sorted(typing))}"]
        if modules:
            lines += ["", f"from konverge.types import {', '.join(modules)}"]
        return "\n".join(lines)

    def _sort_classes(self) -> Iterator[TypedDictClass]:
        """Yield each class after the classes that it refers to; recursive references have no such order."""
        waiting = {each.name: each for each in self.classes}

        def visit(each: TypedDictClass) -> Iterator[TypedDictClass]:
            for name in sorted(each.list_references()):
                if (other := waiting.pop(name, None)) is not None:
                    yield from visit(other)
            yield each

        for each in self.classes:
            if waiting.pop(each.name, None) is not None:
                yield from visit(each)
