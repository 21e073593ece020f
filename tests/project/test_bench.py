"""`make bench` runs measurements that exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import MEASUREMENTS

PROJECT = Path(__file__).resolve().parents[2]
IMPORT_ALL = """
import sys
from importlib import import_module
for name in sys.argv[1:]:
    assert callable(import_module(f"bench.{name}").measure), name
"""


@pytest.mark.slow
def test_each_measurement_is_a_module_that_measures() -> None:
    """In a process of its own, because pytest has other import paths than `python -m bench`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *MEASUREMENTS], cwd=PROJECT, env=environment, check=True, timeout=60
    )
