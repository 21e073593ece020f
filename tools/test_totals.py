"""Sum the results of several pytest runs (JUnit XML files), and list the cases that were left out.

A case that is left out proves nothing: the last lines contain these cases, the reasons, and the command that installs
what they need.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

_COUNTED = ("tests", "failures", "errors", "skipped")
_MOST_NAMES = 40
_REAL = "real.xml"
_NO_REAL_CLUSTER = (
    "None of the cases of the real cluster ran. make control-plane builds it where Go is installed; or name a folder "
    "with its programs in KUBEBUILDER_ASSETS"
)


def main(paths: list[str]) -> None:
    """Print the total results of all files; JUnit counts an expected failure as skipped."""
    total: Counter[str] = Counter()
    seconds = 0.0
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    notes = []
    for path in paths:
        count = 0
        for suite in ElementTree.parse(path).iter("testsuite"):
            total.update({name: int(suite.get(name, "0")) for name in _COUNTED})
            seconds += float(suite.get("time", "0"))
            count += int(suite.get("tests", "0"))
            for reason, case in _cases_left_out(suite):
                left_out[reason].append(case)
        if not count and Path(path).name == _REAL:
            notes.append(_NO_REAL_CLUSTER)
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    missing = sum(map(len, left_out.values()))
    print(
        f"All tests: {passed} passed, {failed} failed, {missing} left out, "
        f"{total['skipped'] - missing} failed as expected in {seconds:.0f} s"
    )
    for reason, cases in sorted(left_out.items()):
        print(f"Left out, {len(cases)}: {reason}")
        for case in sorted(cases)[:_MOST_NAMES]:
            print(f"  {case}")
        if len(cases) > _MOST_NAMES:
            print(f"  and {len(cases) - _MOST_NAMES} more")
    for note in notes:
        print(note)


def _cases_left_out(suite: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """Yield the reason and the name of each case that was left out."""
    for case in suite.iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None and skipped.get("type") == "pytest.skip":
            yield skipped.get("message") or "no reason is given", f"{case.get('classname')}::{case.get('name')}"


if __name__ == "__main__":
    main(sys.argv[1:])
