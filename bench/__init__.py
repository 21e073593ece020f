"""Benchmarks of hot paths, as ratios to a floor in the same run; `python -m bench` prints them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PROJECT = Path(__file__).resolve().parent.parent

# The measurements of the resolution use servers of its tests, and start some of them as programs. `tests` is one
# namespace package over the folders of all packages; pytest finds it by `pythonpath` in pyproject.toml.
_FOLDERS = [*(str(folder) for folder in sorted((_PROJECT / "packages").iterdir())), str(_PROJECT)]
sys.path += [folder for folder in _FOLDERS if folder not in sys.path]
os.environ["PYTHONPATH"] = os.pathsep.join(_FOLDERS)
