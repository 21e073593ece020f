"""Writes the boxes and the findings of the Katalogs."""

from __future__ import annotations

from tests.box.katalog.katalogs import FOLDER, NAMES, format_findings, import_sample

for each in NAMES:
    found = import_sample((FOLDER / f"{each}.yaml").read_bytes(), f"{each}.yaml")
    (FOLDER / f"{each}.box.yaml").write_text(found.text, encoding="utf-8")
    (FOLDER / f"{each}.listed.txt").write_text(format_findings(found), encoding="utf-8")
