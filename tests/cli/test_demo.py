"""The demo, as `make demo` runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from konverge.cli.demo import example_folder
from konverge.cli.story import webapp_story

pytestmark = pytest.mark.embedded

WEBAPP = yaml.safe_load((example_folder() / "webapp.yaml").read_text())


@pytest.mark.timeout(150)
def test_every_step_of_the_story_happens(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "konverge", "demo", "--plain"]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=140)

    assert done.returncode == 0, done.stdout + done.stderr
    told = re.findall(r"^ *\d+\. (.*)$", done.stdout, re.MULTILINE)
    assert told == [step.title for step in webapp_story(WEBAPP)]
    assert len(re.findall(r"^    done in ", done.stdout, re.MULTILINE)) == len(told)
    assert "sent 0 requests" in done.stdout
    assert "konverge demo --stay" in done.stdout


def test_an_operator_that_ends_fails_the_demo(environment: dict[str, str], tmp_path: Path) -> None:
    done = tell(environment, tmp_path, replace=("operator.manages(", "operator.no_such_method("))

    assert done.returncode == 1
    assert "the operator ended with exit code 3" in done.stderr
    assert "AttributeError" in done.stderr


def test_a_step_that_does_not_happen_fails_the_demo_and_says_what_was_seen(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = tell(environment, tmp_path, replace=("delete())", ")"))

    assert done.returncode == 1
    expected = "expected: Service shop-web is gone; seen: it is still there after 15 s"
    assert expected in done.stderr.splitlines()[-1]


def tell(environment: dict[str, str], folder: Path, replace: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """The demo's story with another operator: the example with one text replaced."""
    shutil.copytree(example_folder(), folder / "webapp")
    file = folder / "webapp" / "operator.py"
    changed = file.read_text().replace(*replace)
    assert changed != file.read_text()
    file.write_text(changed)
    command = [sys.executable, "-m", "konverge", "demo", "--plain", "--example", str(folder / "webapp")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
