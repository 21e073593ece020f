"""Writes what becomes of the Katalogs."""

from __future__ import annotations

from tests.box.katalog.katalogs import FOLDER, NAMES, imported, listed

for each in NAMES:
    found = imported((FOLDER / f"{each}.yaml").read_bytes(), f"{each}.yaml")
    (FOLDER / f"{each}.box.yaml").write_text(found.text, encoding="utf-8")
    (FOLDER / f"{each}.listed.txt").write_text(listed(found), encoding="utf-8")
