"""`konverge resolve disk`: a file of a local directory."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Konverge
from tests.resolution.fake_resolver import BOX


def test_the_command_reads_and_locks_a_file(konverge: Konverge, tmp_path: Path) -> None:
    boxes = tmp_path / "boxes"
    (boxes / "shop").mkdir(parents=True)
    (boxes / "shop" / "box.yaml").write_bytes(BOX)
    lock, command = tmp_path / "definitions.lock", ("resolve", "disk", "--path", "shop/box.yaml")
    done = konverge(*command, "--directory", str(boxes))
    assert (done.returncode, done.stdout.encode()) == (0, BOX)
    assert "requires --directory DIR" in konverge(*command).stderr
    konverge(*command, "--directory", str(boxes), "--lock", str(lock))
    assert str(boxes) not in lock.read_text()
    (boxes / "shop" / "box.yaml").write_bytes(BOX + b"data: {}\n")
    locked = konverge(*command, "--directory", str(boxes), "--lock", str(lock))
    assert locked.stdout.encode() == BOX
    wrong = konverge("resolve", "disk", "--directory", str(boxes), "--path", "shop/bx.yaml")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "NotFound" in wrong.stderr
