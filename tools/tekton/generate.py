"""Generate konverge_resolution/_internal/signatures/tekton_types.json from the Go types of Tekton.

    python tools/tekton/generate.py CHECKOUT

CHECKOUT is a checkout of tektoncd/pipeline with its ``vendor`` folder; ``go`` must be installed. A signature of
Tekton covers the JSON that Go writes for an object. The file has the members of each struct in their order, as ``name
type``: ``?`` after the name is ``omitempty``; ``??`` too, but older versions wrote the member without a value. ``*``,
``[]`` and ``{}`` before a type are a pointer, a list and a mapping; ``!`` marks a type that writes its JSON itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = (
    Path(__file__).resolve().parents[2]
    / "packages/konverge-resolution/src/konverge_resolution/_internal/signatures/tekton_types.json"
)
_PROGRAM = Path(__file__).with_name("layout.go")
# ``omitzero`` was added for this purpose. The other member had no ``omitempty`` until 2024.
_MARKS = {"": "", "empty": "?", "emptyzero": "??"}
_WRITTEN_BEFORE = frozenset({("pipeline/v1beta1.StepTemplate", "name")})


def read_layout(checkout: Path) -> dict[str, list[str]]:
    """Run the Go program in a checkout; return the members of each struct."""
    with tempfile.TemporaryDirectory(dir=checkout) as folder:
        (Path(folder) / "main.go").write_text(_PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
        command = ["go", "run", f"./{Path(folder).name}"]
        environment = {**os.environ, "GOFLAGS": "-mod=vendor"}
        output = subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True).stdout
    structs = json.loads(output)
    return {
        name: [f"{each['name']}{_find_mark(name, each)} {each['type']}" for each in members]
        for name, members in sorted(structs.items())
    }


def _find_mark(struct: str, member: dict[str, str]) -> str:
    if (struct, member["name"]) in _WRITTEN_BEFORE:
        return "??"
    return _MARKS[member.get("omitted", "")]


if __name__ == "__main__":
    TARGET.write_text(json.dumps(read_layout(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
