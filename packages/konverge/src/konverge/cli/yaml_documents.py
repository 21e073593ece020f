"""Files of YAML documents that somebody else has written: read within limits, as an API server takes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge.kube.yaml_loader import load_yaml_documents

__all__ = ["STDIN", "read_objects"]

STDIN = Path("-")

_MAX_BYTES = 16 * 1024 * 1024


def read_objects(file: Path) -> list[Object]:
    """The objects of a file, or of stdin; those that stand in a List one by one.

    Raises:
        konverge.errors.ConfigurationError: It cannot be read, is no YAML, has anything but objects, or is too large.
    """
    text = _read_text(file)
    try:
        documents = [each for each in load_yaml_documents(text) if each is not None]
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file}: no YAML: {' '.join(str(error).split())}") from error
    found: list[Object] = []
    for document in documents:
        items = document.get("items") if _is_list(document) else [document]
        for each in items if isinstance(items, list) else [items]:
            if not isinstance(each, dict):
                raise ConfigurationError(f"{file}: expected objects, found a {type(each).__name__}")
            found.append(each)
    return found


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
