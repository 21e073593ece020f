"""A module's text: its imports, and its classes, each behind those that it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from konverge.typegen.annotations import INDENT, Annotation, build_literal, quote_string
from konverge.typegen.class_names import is_class_field_name

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
    """The fields of an object of that kind: first what every object has."""
    found = {field.name: field for field in fields}
    found["apiVersion"] = TypedDictField("apiVersion", build_literal(api_version))
    found["kind"] = TypedDictField("kind", build_literal(kind))
    first = [found.pop(name) for name in ("apiVersion", "kind", "metadata") if name in found]
    return (*first, *found.values())


@dataclass(frozen=True, slots=True)
class TypedDictClass:
    """An object with known fields."""

    name: str
    fields: tuple[TypedDictField, ...]

    def list_references(self) -> set[str]:
        """What its fields' types refer to."""
        return {name for field in self.fields for name in field.annotation.names}

    def render(self, defined: Iterable[str]) -> str:
        """The class, or where a field's name does not allow it, the call that makes the same.

        Args:
            defined: The classes before it. The type of a field that refers to another one of the module is quoted.
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
    """A module before it is text.

    Args:
        docstring: Its words, without quotes.
        classes: In any order.
        aliases: Names for types that are no class of the module.
    """

    docstring: str
    classes: Sequence[TypedDictClass]
    aliases: Mapping[str, Annotation]

    def render(self) -> str:
        """The Python of the module."""
        blocks = []
        defined = set(self.aliases)
        for each in self._sort_classes():
            blocks.append(each.render(defined))
            defined.add(each.name)
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
        """Those that a class refers to before it; what refers to itself has no such order."""
        waiting = {each.name: each for each in self.classes}

        def visit(each: TypedDictClass) -> Iterator[TypedDictClass]:
            for name in sorted(each.list_references()):
                if (other := waiting.pop(name, None)) is not None:
                    yield from visit(other)
            yield each

        for each in self.classes:
            if waiting.pop(each.name, None) is not None:
                yield from visit(each)
