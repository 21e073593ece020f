"""Katalogs of each generation, the boxes that they become, and what of them is listed.

Run this module to write the boxes and the lists anew, and look at what changed: `python -m tests.box.katalog.katalogs`.
"""

from __future__ import annotations

from pathlib import Path

from konverge_box.katalog import KatalogImport, import_katalog

FOLDER = Path(__file__).parent
NAMES = sorted(
    path.stem for path in FOLDER.glob("*.yaml") if not path.stem.endswith("-crd") and not path.stem.endswith(".box")
)


def read(name: str) -> bytes | None:
    """A file beside the Katalogs."""
    path = FOLDER / name
    return path.read_bytes() if path.is_file() else None


def import_sample(text: str | bytes, name: str = "katalog.yaml") -> KatalogImport:
    """What becomes of a Katalog that stands beside those."""
    return import_katalog(text, file=name, read=read)


def format_findings(found: KatalogImport) -> str:
    """What is listed, a line each."""
    return "".join(f"{each}\n" for each in found.listed)
