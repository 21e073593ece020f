"""Reads of external YAML files: with limits, and parsed like an API server parses them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from konverge._internal.kube import Object
from konverge._internal.kube.yaml_loader import load_yaml_documents
from konverge.errors import ConfigurationError

__all__ = ["STDIN", "read_objects"]

STDIN = Path("-")

_MAX_BYTES = 16 * 1024 * 1024


def read_objects(file: Path) -> list[Object]:
    """Return the objects of a file or of stdin; the items of a List are separate objects.

    Raises:
        konverge.errors.ConfigurationError: The file is unreadable, too large, not YAML, or has other values than
            objects.
    """
    text = _read_text(file)
    try:
        documents = [document for document in load_yaml_documents(text) if document is not None]
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file}: expected YAML: {' '.join(str(error).split())}") from error
    objects: list[Object] = []
    for document in documents:
        items = document.get("items") if _is_list(document) else [document]
        for item in items if isinstance(items, list) else [items]:
            if not isinstance(item, dict):
                raise ConfigurationError(f"{file}: expected objects, found a {type(item).__name__}")
            objects.append(item)
    return objects


def _is_list(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(kind := document.get("kind"), str) and kind.endswith("List")


def _read_text(file: Path) -> bytes:
    try:
        if file == STDIN:
            text = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with file.open("rb") as opened:
                text = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
    if len(text) > _MAX_BYTES:
        raise ConfigurationError(f"{file}: expected at most {_MAX_BYTES >> 20} MiB of YAML, found more")
    return text
