"""Katalogs of each schema generation, the resulting boxes, and their findings.

Run this module to write them again, and review the changes: `python -m tests.box.katalog.katalogs`.
"""

from __future__ import annotations

from pathlib import Path

from konverge_box._internal.katalog import KatalogImport, import_katalog

FOLDER = Path(__file__).parent
NAMES = sorted(
    path.stem for path in FOLDER.glob("*.yaml") if not path.stem.endswith("-crd") and not path.stem.endswith(".box")
)


def read(name: str) -> bytes | None:
    """Return the content of a file beside the Katalogs; None if there is none."""
    path = FOLDER / name
    return path.read_bytes() if path.is_file() else None


def import_sample(text: str | bytes, name: str = "katalog.yaml") -> KatalogImport:
    """Convert a Katalog that may name the files of this folder."""
    return import_katalog(text, file=name, read=read)


def format_findings(found: KatalogImport) -> str:
    """Format the findings, one per line."""
    return "".join(f"{each}\n" for each in found.listed)
