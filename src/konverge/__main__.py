"""``python -m konverge``: the same as the ``konverge`` script."""

from __future__ import annotations

from konverge.cli import main

if __name__ == "__main__":
    main()
