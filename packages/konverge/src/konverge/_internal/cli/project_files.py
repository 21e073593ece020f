"""The files of a new project: templates with placeholders, and the names that fill them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, TypeAlias

from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge.errors import ConfigurationError

__all__ = ["ProjectKind", "ProjectNames", "parse_names", "render_project"]

ProjectKind: TypeAlias = Literal["python", "box"]

_TEMPLATES = "project_templates"
_SUFFIX = ".txt"
_PLACEHOLDER = re.compile(r"@([A-Z]+)@")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,39}")
# Classes, constants and words of Python and of the templates, which a class of the same name would hide.
_RESERVED_KINDS = frozenset(
    {
        *("None", "True", "False", "Annotated", "Meta"),
        *("Component", "ComponentBuilder", "Metadata", "Operator", "Deployment", "Service"),
        *("Cluster", "GroupVersionKind", "ObjectKey", "OWNER", "DEPLOYMENT", "TYPE_CHECKING"),
    }
)


# Words that YAML reads as no text.
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """The names in a project.

    Args:
        name: The name of the operator.
        kind: The kind of its custom resource.
        group: The API group of that kind.
    """

    name: str
    kind: str
    group: str


def parse_names(name: str, kind: str | None, group: str) -> ProjectNames:
    """Validate the names.

    Args:
        name: The name of the operator, which Leases, accounts and labels contain too.
        kind: The kind; None to derive it from the name: ``web-shop-operator`` gives ``WebShop``.
        group: The API group.

    Raises:
        konverge.errors.ConfigurationError: A name is invalid; the message lists every error.
    """
    errors = [f"NAME {name!r}: {error}" for error in validate_dns_label(name)]
    if not errors and kind is None:
        words = name.removesuffix("-operator").split("-")
        kind = "".join(word.capitalize() for word in words)
    if kind is not None:
        if not _KIND.fullmatch(kind):
            errors.append(f"kind {kind!r}: expected a name in CamelCase of at most 40 letters and digits; use --kind")
        elif kind in _RESERVED_KINDS or kind.lower() in _YAML_WORDS:
            errors.append(f"kind {kind!r}: expected a name that the generated files do not use otherwise; use --kind")
    errors += [f"--group {group!r}: {error}" for error in validate_dns_subdomain(group)]
    if not errors and "." not in group:
        errors.append(f"--group {group!r}: expected a DNS name with a dot, such as apps.example.com")
    if errors:
        raise ConfigurationError("; ".join(errors))
    assert kind is not None
    return ProjectNames(name, kind, group)


def render_project(names: ProjectNames, kind: ProjectKind) -> dict[str, str]:
    """Return the text of each file of a project by its path."""
    values = {
        "NAME": names.name,
        "KIND": names.kind,
        "SINGULAR": names.kind.lower(),
        "GROUP": names.group,
        "VERSION": version("konverge"),
    }
    folder = files("konverge._internal.cli") / _TEMPLATES / kind
    return {
        path: _PLACEHOLDER.sub(lambda match: values[match[1]], template.read_text(encoding="utf-8"))
        for path, template in sorted(_iter_templates(folder, ""))
    }


def _iter_templates(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        # Tools skip names that begin with a dot.
        name = re.sub(r"^dot-", ".", entry.name)
        if entry.is_dir():
            yield from _iter_templates(entry, f"{path}{name}/")
        elif name.endswith(_SUFFIX):
            yield f"{path}{name.removesuffix(_SUFFIX)}", entry
