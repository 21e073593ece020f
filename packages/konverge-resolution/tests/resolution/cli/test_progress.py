"""What `konverge resolve` shows while it runs: on a terminal, in a pipe, and with --verbose."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge.clock import SimulatedClock
from konverge_resolution._internal.cli.progress_display import ProgressDisplay
from tests.cli.conftest import Konverge
from tests.resolution.servers.http_server import Handler, http_server

TASK = "apiVersion: v1\nkind: Task\nmetadata: {name: t}\n"
LOOPBACK = ("--allow-network", "127.0.0.0/8")


@contextmanager
def slow_server(*, fails: int = 0) -> Iterator[str]:
    """A server that refuses some requests, then waits for a second in the middle of its response."""
    left = [fails]

    class Slow(Handler):
        def do_GET(self) -> None:
            if left[0]:
                left[0] -= 1
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(TASK)))
            self.end_headers()
            self.wfile.write(TASK[:10].encode())
            self.wfile.flush()
            self.connection.settimeout(1)
            try:
                self.connection.recv(1)
            except TimeoutError:
                self.wfile.write(TASK[10:].encode())

    with http_server(Slow) as port:
        yield f"http://127.0.0.1:{port}"


def run_on_terminal(home: Path, *arguments: str, term: str = "xterm") -> tuple[int, str, str]:
    """The exit code, stdout (a pipe) and what the terminal got."""
    controlling, terminal = pty.openpty()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": term}
    process = subprocess.Popen(
        [sys.executable, "-m", "konverge", *arguments], stdout=subprocess.PIPE, stderr=terminal, env=environment
    )
    os.close(terminal)
    assert process.stdout is not None
    with process, os.fdopen(controlling, "rb", buffering=0) as screen:
        seen = b""
        try:
            while piece := screen.read(4096):
                seen += piece
        except OSError:
            pass  # Linux reports so that the other side has closed it
        output = process.stdout.read().decode()
    return process.returncode, output, seen.decode()


@pytest.mark.slow
def test_a_terminal_shows_phase_host_bytes_rate_and_retries_and_is_clean_afterwards(home: Path) -> None:
    with slow_server(fails=1) as url:
        code, output, screen = run_on_terminal(home, "resolve", "http", "--url", f"{url}/t.yaml", *LOOPBACK)
    assert (code, output) == (0, TASK)
    host = re.escape(url)
    assert re.search(rf"receiving the response of {host} \(\d+ s, 10 B, \d+ B/s\)", screen), screen
    retry = rf"konverge: Unreachable: {host}/t\.yaml is temporarily unavailable \(status 503\); retry in \d"
    assert re.search(retry, screen)
    assert screen.endswith("\r\x1b[K"), "nothing of the line stays"


@pytest.mark.slow
def test_a_terminal_that_cannot_replace_a_line_shows_none(home: Path) -> None:
    with slow_server() as url:
        done = run_on_terminal(home, "resolve", "http", "--url", f"{url}/t.yaml", *LOOPBACK, term="dumb")
    assert done == (0, TASK, "")


@pytest.mark.slow
def test_in_a_pipe_nothing_is_shown_without_verbose(konverge: Konverge) -> None:
    with slow_server(fails=1) as url:
        quiet = konverge("resolve", "http", "--url", f"{url}/t.yaml", *LOOPBACK)
    assert (quiet.stdout, quiet.stderr) == (TASK, "")
    with slow_server(fails=1) as url:
        verbose = konverge("resolve", "http", "--url", f"{url}/t.yaml", *LOOPBACK, "-v")
    assert (verbose.stdout, "\x1b" in verbose.stderr) == (TASK, False)
    lines = [line.partition("konverge.resolution: ")[2] for line in verbose.stderr.splitlines()]
    phases = ["connecting to", "waiting for the response of", "receiving the response of"]
    assert lines[:2] == [f"{phase} {url}" for phase in phases[:2]]
    assert re.fullmatch(r"retry in \d\.\d s: Unreachable: .* is temporarily unavailable \(status 503\)", lines[2])
    assert lines[3:5] == [f"{phase} {url}" for phase in phases[1:]], "on the connection that is open"
    assert re.fullmatch(rf"resolved {url}/t\.yaml in [\d.]+ s: sha256:[0-9a-f]{{64}}, from remote", lines[5])


@pytest.mark.slow
def test_a_time_limit_names_the_host_and_the_phase(konverge: Konverge) -> None:
    with slow_server() as url:
        done = konverge("resolve", "http", "--url", f"{url}/t.yaml", *LOOPBACK, "--timeout", "0.5")
    message = "resolver 'http': no result within the time limit of 0.5 s; it was receiving the response of"
    assert done.stderr == f"konverge: TimedOut: {message} {url}\n"


@pytest.mark.slow
def test_a_time_limit_does_not_name_the_target_of_a_redirect(konverge: Konverge) -> None:
    """In a cluster all readers of a request see the message."""
    with slow_server() as url:

        class Redirecting(Handler):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", f"{url}/t.yaml")
                self.send_header("Content-Length", "0")
                self.end_headers()

        with http_server(Redirecting) as port:
            given = f"http://127.0.0.1:{port}/t.yaml"
            done = konverge("resolve", "http", "--url", given, *LOOPBACK, "--timeout", "0.5")
    assert done.stderr.endswith("; it was receiving the response of another server\n")


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_host_cannot_control_the_terminal() -> None:
    screen = io.StringIO()
    display = ProgressDisplay(screen, SimulatedClock(), lambda: 40)
    async with display.updates():
        display.on_phase("connecting to", "https://a.example/\x1b]0;owned\x07" + "x" * 100)
        display.on_retry("NotFound: \x1b[2J", 1)
        await SimulatedClock().sleep(1)
    lines = screen.getvalue().replace("\r\x1b[K", "\n").splitlines()
    assert all(line.isprintable() for line in lines)
    assert (max(map(len, lines[1:])), lines[0]) == (39, "konverge: 'NotFound: \\x1b[2J'; retry in 1.0 s")
