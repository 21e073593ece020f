"""`make bench` runs measurements that exist."""

from __future__ import annotations

from importlib import import_module

import pytest

from bench.__main__ import MEASUREMENTS


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_each_measurement_is_a_module_that_measures(name: str) -> None:
    assert callable(import_module(f"bench.{name}").measure)
