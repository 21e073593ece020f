"""Fixtures for the tests of commands."""

from __future__ import annotations

from tests.cli.conftest import anyio_backend, environment, forks, home, konverge, started_konverge, stuck

__all__ = ["anyio_backend", "environment", "forks", "home", "konverge", "started_konverge", "stuck"]
