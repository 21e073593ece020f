"""Add up the results of several pytest runs (JUnit XML files) in one line."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

COUNTED = ("tests", "failures", "errors", "skipped")


def main(paths: list[str]) -> None:
    """Print what became of the tests in all files together; JUnit counts an expected failure as skipped."""
    total: Counter[str] = Counter()
    seconds = 0.0
    for path in paths:
        for suite in ElementTree.parse(path).iter("testsuite"):
            total.update({name: int(suite.get(name, "0")) for name in COUNTED})
            seconds += float(suite.get("time", "0"))
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    skipped = f"{total['skipped']} skipped or expected to fail"
    print(f"All tests: {passed} passed, {failed} failed, {skipped} in {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
