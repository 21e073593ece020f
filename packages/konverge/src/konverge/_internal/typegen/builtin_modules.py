"""The modules of ``konverge.types``: one for each Go package in an API server's OpenAPI definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.typegen.annotations import Annotation
from konverge._internal.typegen.class_names import ClassNames
from konverge._internal.typegen.module_source import ModuleSource, TypedDictClass, with_kind_fields
from konverge._internal.typegen.schema_translation import SchemaPath, SchemaTranslator

__all__ = ["generate_builtin_modules"]

_PREFIX = "#/components/schemas/"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_HOME_OF_ALIASES = "meta_v1"
_ALIASES = {_QUANTITY: Annotation("str | int | float")}

_DOCSTRING = """The objects of {package} as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""


def generate_builtin_modules(
    kinds: Mapping[str, Mapping[str, str]], definitions: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Return the text of each module by its name, for kinds and all types that they contain.

    Args:
        kinds: The name of the definition of each kind, by apiVersion and kind.
        definitions: OpenAPI v3 schemas by name, for example ``io.k8s.api.apps.v1.Deployment``.

    Raises:
        konverge.errors.ConfigurationError: A definition is not a schema, or it refers to a missing one.
    """
    top_level = {name: (version, kind) for version, of in kinds.items() for kind, name in of.items()}
    packages: dict[str, dict[str, TypedDictClass]] = {}
    waiting = sorted(top_level)
    while waiting:
        name = waiting.pop()
        classes = packages.setdefault(_package_name(name), {})
        if name not in classes:
            definition = _BuiltinDefinition(name, definitions)
            classes[name] = definition.build_class(top_level.get(name))
            waiting.extend(definition.refers_to)
    return {
        _module_name(package): ModuleSource(
            _DOCSTRING.format(package=package),
            [classes[name] for name in sorted(classes)],
            {_short_name(name): alias for name, alias in _ALIASES.items()}
            if _module_name(package) == _HOME_OF_ALIASES
            else {},
        ).render()
        for package, classes in sorted(packages.items())
    }


class _BuiltinDefinition:
    """One definition and its conversion to a class.

    Args:
        name: The name of the definition.
        definitions: All definitions by name.
    """

    def __init__(self, name: str, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        self.refers_to: list[str] = []
        """Names of the definitions that it requires as classes."""
        self._name = name
        self._definitions = definitions
        self._translation = SchemaTranslator(ClassNames(), self._resolve, needs_defaulted=True)

    def build_class(self, top_level: tuple[str, str] | None) -> TypedDictClass:
        """Return the class; a top-level object gets its apiVersion and kind as literals."""
        place = SchemaPath(self._name)
        fields = self._translation.translate_fields(self._definitions[self._name], _short_name(self._name), place)
        if top_level is not None:
            fields = with_kind_fields(fields, *top_level)
        return TypedDictClass(_short_name(self._name), fields)

    def _resolve(self, target: str, path: SchemaPath) -> Annotation:
        name = target.removeprefix(_PREFIX)
        if name in _ALIASES:
            return self._refer_to(_HOME_OF_ALIASES, name)
        if name not in self._definitions:
            raise path.build_error("a reference to a definition of the document", target)
        if not self._definitions[name].get("properties"):
            return self._translation.translate_type(self._definitions[name], _short_name(name), path.child(name))
        self.refers_to.append(name)
        return self._refer_to(_module_name(_package_name(name)), name)

    def _refer_to(self, module: str, name: str) -> Annotation:
        is_ours = module == _module_name(_package_name(self._name))
        return Annotation(_short_name(name) if is_ours else f"{module}.{_short_name(name)}")


def _package_name(name: str) -> str:
    return name.rpartition(".")[0]


def _short_name(name: str) -> str:
    return name.rpartition(".")[2]


def _module_name(package: str) -> str:
    """Return the module of a package: ``apps_v1`` for ``io.k8s.api.apps.v1``."""
    return "_".join(package.split(".")[-2:])
