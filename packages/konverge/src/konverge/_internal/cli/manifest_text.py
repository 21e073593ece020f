"""Manifests as YAML in which texts of several lines keep their lines, or as one JSON List."""

from __future__ import annotations

import json
from typing import Any, Literal

import yaml

from konverge._internal.kube import Object

__all__ = ["format_manifests"]


def format_manifests(objects: list[Object], output: Literal["yaml", "json"]) -> str:
    """Return the objects as text for ``kubectl apply``; equal objects give equal text."""
    if output == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"
    return yaml.dump_all(
        objects, Dumper=_ManifestDumper, sort_keys=False, explicit_start=True, width=120, allow_unicode=True
    )


class _ManifestDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_ManifestDumper.add_representer(str, _represent_text)
