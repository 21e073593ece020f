"""CustomResourceDefinitions, and what the module made of them is at run time."""

from __future__ import annotations

from typing import Any

from konverge._internal.typegen import generate_custom_resource_module
from konverge.kube import Object

__all__ = ["build_definition", "build_spec_definition", "build_version", "load_module"]


def build_version(name: str = "v1", schema: Any = None, *, served: bool = True) -> Object:
    """One version of a definition; of anything when there is no schema."""
    return {
        "name": name,
        "served": served,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or {"type": "object"}},
    }


def build_definition(*versions: Object, group: str = "example.com", kind: str = "Widget") -> Object:
    """A definition as a file has it."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "names": {"kind": kind, "plural": "widgets"}, "versions": list(versions)},
    }


def build_spec_definition(schema: Any, **root: Any) -> Object:
    """A definition of a kind whose ``spec`` has that schema."""
    return build_definition(build_version(schema={"type": "object", "properties": {"spec": schema}, **root}))


def load_module(*definitions: Object) -> dict[str, Any]:
    """The module's names after Python has run it."""
    names: dict[str, Any] = {}
    exec(compile(generate_custom_resource_module(definitions), "generated", "exec", dont_inherit=True), names)
    return names
