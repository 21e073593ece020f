"""Write docs/public-names.md, the list of the promised names: `python -m tools.public_names`."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

_REPOSITORY = Path(__file__).parents[1]
PAGE = _REPOSITORY / "docs" / "public-names.md"
_PACKAGES = ("konverge", "konverge_cluster", "konverge_resolution", "konverge_box")
# Generated, with a page of its own.
_OTHERS = frozenset({"konverge.__main__", "konverge.types"})
_HEAD = """\
# Public names

These modules are promised; [Versioning](versioning.md) explains what that means. Everything in a package `_internal` is
private and can change in each release. `konverge.types` contains the generated types of Kubernetes; see
[Types](types.md).

This page is generated: `python -m tools.public_names`.
"""


def list_public_modules() -> list[str]:
    """List the promised modules of all packages."""
    found: list[str] = []
    for package in _PACKAGES:
        folder = _REPOSITORY / "packages" / package.replace("_", "-") / "src" / package
        found.append(package)
        found.extend(f"{package}.{file.stem}" for file in sorted(folder.glob("*.py")) if not file.stem.startswith("_"))
    return [name for name in found if name not in _OTHERS]


def build_page() -> str:
    """Build the page: a section for each module, a row for each name."""
    return _HEAD + "".join(_build_section(import_module(name)) for name in list_public_modules())


def _build_section(module: ModuleType) -> str:
    names: list[str] = sorted(getattr(module, "__all__", ()))
    lines = ["", f"## `{module.__name__}`", "", *(inspect.getdoc(module) or "").split("\n\n")[0].split("\n")]
    if names:
        lines += ["", "| name | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {_summarize(getattr(module, name))} |" for name in names]
    return "\n".join(lines) + "\n"


def _summarize(value: object) -> str:
    """Return the first sentence of a class or function; nothing for a constant or a type alias."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
