"""The names that konverge exports, to check the documentation."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from functools import cache
from typing import Any

import konverge
import konverge_resolution
from konverge._internal.cli.main import konverge as program
from konverge._internal.cli.run import run
from konverge._internal.runtime.observability import metric_families
from konverge_cluster._internal.testing.golden import golden_plugin

__all__ = ["is_known", "list_known_names"]

PACKAGES = [
    f"{package.__name__}.{found.name}"
    for name in ("konverge", "konverge_cluster", "konverge_resolution", "konverge_box")
    for package in (importlib.import_module(name), importlib.import_module(f"{name}._internal"))
    for found in pkgutil.iter_modules(package.__path__)
    if found.name not in ("__main__", "_internal")
]


@cache
def list_known_names() -> frozenset[str]:
    """Return the exports of konverge's packages, with their attributes and parameters."""
    names = set(dir(konverge.Operator("any")))
    for exported in (konverge, konverge_resolution, *map(importlib.import_module, PACKAGES)):
        for name in getattr(exported, "__all__", ()):
            found: Any = getattr(exported, name)
            names.add(name)
            if inspect.isclass(found):
                names.update(dir(found), vars(found), getattr(found, "__annotations__", ()))
                names.update(*(list_parameters(member) for _, member in inspect.getmembers(found, inspect.isroutine)))
            if callable(found):
                names.update(list_parameters(found))
    return frozenset(
        names
        | {family.name for family in vars(metric_families).values() if isinstance(family, metric_families.MetricFamily)}
    )


def list_parameters(function: Any) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def is_known(code: str, names: frozenset[str]) -> bool:
    """Return True for a command, an option, or code in which konverge has each name."""
    if code.startswith("konverge "):
        return code.split()[1] in program.list_commands(None)  # type: ignore[arg-type]
    if code.startswith("pytest --"):
        return f'"{code.split()[1]}"' in inspect.getsource(golden_plugin)
    if code.startswith("--"):
        return any(code in (*option.opts, *option.secondary_opts) for option in run.params)
    words = re.findall(r"(?<![\w\"])[A-Za-z_]\w*", re.sub(r'"[^"]*"|=\w+', "", code.partition("(")[0]))
    given = re.findall(r"(\w+)=", code)
    return bool(words) and words[-1] in names and all(name in names for name in given)
