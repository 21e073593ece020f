"""The demo, as `make demo` runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from konverge_cluster._internal.cli.demo import find_example_folder
from konverge_cluster._internal.cli.demo_script import build_webapp_steps

pytestmark = pytest.mark.embedded

WEBAPP = yaml.safe_load((find_example_folder() / "webapp.yaml").read_text())


def write_changed_example(folder: Path, before: str, after: str) -> Path:
    """Return a copy of the example with a changed text in its operator."""
    example = folder / "webapp"
    shutil.copytree(find_example_folder(), example)
    file = example / "operator.py"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
    return example


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_every_step_of_the_story_happens(environment: dict[str, str], tmp_path: Path) -> None:
    example = write_changed_example(
        tmp_path, "timedelta(seconds=8)", "timedelta(seconds=2)"
    )  # the grace, which the story waits for
    command = [sys.executable, "-m", "konverge", "demo", "--plain", "--example", str(example)]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=140)

    assert done.returncode == 0, done.stdout + done.stderr
    titles = re.findall(r"^ *\d+\. (.*)$", done.stdout, re.MULTILINE)
    assert titles == [step.title for step in build_webapp_steps(WEBAPP)]
    assert len(re.findall(r"^    done in ", done.stdout, re.MULTILINE)) == len(titles)
    assert "sent 0 requests" in done.stdout
    assert "konverge demo --stay" in done.stdout


@pytest.mark.slow
def test_an_operator_that_ends_fails_the_demo(environment: dict[str, str], tmp_path: Path) -> None:
    example = write_changed_example(tmp_path, "operator.manages(", "operator.no_such_method(")
    command = [sys.executable, "-m", "konverge", "demo", "--plain", "--example", str(example)]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 1
    assert "the operator ended with exit code 3" in done.stderr
    assert "AttributeError" in done.stderr
