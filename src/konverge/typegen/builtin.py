"""The modules of ``konverge.types``: one for each Go package that an API server's OpenAPI definitions come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.typegen.annotations import Annotation
from konverge.typegen.modules import Module, TypedDictClass, fields_of_kind
from konverge.typegen.names import Names
from konverge.typegen.schemas import Place, Translation

__all__ = ["builtin_modules"]

_PREFIX = "#/components/schemas/"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_HOME_OF_ALIASES = "meta_v1"
_ALIASES = {_QUANTITY: Annotation("str | int | float")}

_DOCSTRING = """The objects of {package} as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""


def builtin_modules(
    kinds: Mapping[str, Mapping[str, str]], definitions: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """The text of each module, by its name, for kinds and everything that they hold.

    Args:
        kinds: By apiVersion, which kind has which definition.
        definitions: OpenAPI v3 schemas by name, for example ``io.k8s.api.apps.v1.Deployment``.

    Raises:
        konverge.errors.ConfigurationError: A definition is no schema, or refers to one that is not there.
    """
    top_level = {name: (version, kind) for version, of in kinds.items() for kind, name in of.items()}
    packages: dict[str, dict[str, TypedDictClass]] = {}
    waiting = sorted(top_level)
    while waiting:
        name = waiting.pop()
        classes = packages.setdefault(_package(name), {})
        if name not in classes:
            definition = _Definition(name, definitions)
            classes[name] = definition.typed_dict(top_level.get(name))
            waiting.extend(definition.refers_to)
    return {
        _module(package): Module(
            _DOCSTRING.format(package=package),
            [classes[name] for name in sorted(classes)],
            {_short(name): alias for name, alias in _ALIASES.items()} if _module(package) == _HOME_OF_ALIASES else {},
        ).text()
        for package, classes in sorted(packages.items())
    }


class _Definition:
    """One definition that becomes a class.

    Args:
        name: Its own.
        definitions: All.
    """

    def __init__(self, name: str, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        self.refers_to: list[str] = []
        """Those that it needs as classes."""
        self._name = name
        self._definitions = definitions
        self._translation = Translation(Names(), self._resolve, needs_defaulted=True)

    def typed_dict(self, top_level: tuple[str, str] | None) -> TypedDictClass:
        """The class; of an object with apiVersion and kind, these are known."""
        place = Place(self._name)
        fields = self._translation.fields(self._definitions[self._name], _short(self._name), place)
        if top_level is not None:
            fields = fields_of_kind(fields, *top_level)
        return TypedDictClass(_short(self._name), fields)

    def _resolve(self, target: str, place: Place) -> Annotation:
        name = target.removeprefix(_PREFIX)
        if name in _ALIASES:
            return self._named(_HOME_OF_ALIASES, name)
        if name not in self._definitions:
            raise place.mistake("a reference to a definition of the document", target)
        if not self._definitions[name].get("properties"):
            return self._translation.annotation(self._definitions[name], _short(name), place.below(name))
        self.refers_to.append(name)
        return self._named(_module(_package(name)), name)

    def _named(self, module: str, name: str) -> Annotation:
        is_ours = module == _module(_package(self._name))
        return Annotation(_short(name) if is_ours else f"{module}.{_short(name)}")


def _package(name: str) -> str:
    return name.rpartition(".")[0]


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _module(package: str) -> str:
    """``apps_v1`` of ``io.k8s.api.apps.v1``."""
    return "_".join(package.split(".")[-2:])
