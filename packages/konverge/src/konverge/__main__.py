"""Entry point of ``python -m konverge``, the same as the ``konverge`` script."""

from __future__ import annotations

from konverge._internal.cli import run_program

if __name__ == "__main__":
    run_program()
