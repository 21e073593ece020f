"""Generate konverge/_internal/kube/unicode_scripts.json from the tables of Go's package unicode.

    python tools/unicode_scripts/generate.py

Patterns of the API server can name scripts (``\\p{Greek}``, ``\\p{Common}``), and Python does not know to which script
a letter belongs. ``go`` must be found; its version is that of the API server of tools/controlplane. Each script is a
text of ranges in hexadecimal: ``5b-60`` from the first to the last letter, ``d7-f7/20`` with a step between letters.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = REPOSITORY / "packages/konverge/src/konverge/_internal/kube/unicode_scripts.json"
ENTRY = re.compile(r'^\t"(\w+)":\s+(\w+),$', re.MULTILINE)
TABLE = re.compile(r"^var _(\w+) = &RangeTable\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
RANGE = re.compile(r"\{0x([0-9a-f]+), 0x([0-9a-f]+), (\d+)\}")


def main() -> None:
    root = subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()
    source = (Path(root) / "src/unicode/tables.go").read_text()
    begin = source.index("var Scripts = map")
    names = [name for name, _ in ENTRY.findall(source[begin : source.index("\n}", begin)])]
    tables = dict(TABLE.findall(source))
    # Go finds no script whose name has an underscore, or a capital letter inside.
    names = [name for name in names if name == name.replace("_", "").capitalize()]
    scripts = {name: " ".join(map(format_range, RANGE.findall(tables[name]))) for name in names}
    TARGET.write_text(json.dumps(scripts, indent=0) + "\n")
    print(f"{TARGET.relative_to(REPOSITORY)}  {TARGET.stat().st_size} bytes, {len(scripts)} scripts")


def format_range(found: tuple[str, str, str]) -> str:
    """Return the short form of a range."""
    first, last, step = (int(found[0], 16), int(found[1], 16), int(found[2]))
    text = f"{first:x}-{last:x}"
    return text if step == 1 else f"{text}/{step:x}"


if __name__ == "__main__":
    main()
