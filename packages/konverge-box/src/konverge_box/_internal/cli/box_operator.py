"""The operator of a box file for ``konverge run FILE.yaml``, which finds it by its entry point."""

from __future__ import annotations

from pathlib import Path

from konverge._internal.operator import Operator
from konverge_box._internal.cli.box import read_box
from konverge_box._internal.runtime import build_box_operator
from konverge_box._internal.runtime.box_validation import load_valid_box

__all__ = ["load_box_operator"]


def load_box_operator(file: Path) -> Operator:
    """Load and validate a box file.

    Raises:
        konverge.errors.ConfigurationError: The file cannot be read, or is invalid.
    """
    return build_box_operator(load_valid_box(read_box(file), file=str(file)), file=file)
