"""Build what is missing of the real control plane into the user's cache folder.

    python tools/controlplane/build.py

Needs Go and nothing else; the versions are those that the go.mod files beside this script pin. The folder and the
version in its name are those of `konverge_cluster.controlplane.binaries`, which this script runs as a file, so that it
works before konverge is installed. A program is built again when the one that is there was made from another version.
"""

from __future__ import annotations

import fcntl
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BINARIES: dict[str, Any] = runpy.run_path(
    str(HERE.parents[1] / "packages" / "konverge-cluster" / "src" / "konverge_cluster" / "controlplane" / "binaries.py")
)
KUBERNETES_VERSION: str = BINARIES["KUBERNETES_VERSION"]
UNFINISHED = ".building-"
PROGRESS_LINES = 250


class BuildError(Exception):
    """The build cannot go on; the message says why and what to do."""


@dataclass(frozen=True)
class Module:
    """A folder with a go.mod, and what is built from the module that it pins.

    Args:
        folder: The folder's name.
        module: The Go module that decides a program's version.
        packages: The package of each program, relative to the module.
        estimate: How long it takes from nothing, on two cores.
    """

    folder: str
    module: str
    packages: dict[str, str]
    estimate: str

    @property
    def pinned(self) -> str:
        """The version that go.mod asks for."""
        text = (HERE / self.folder / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise BuildError(f"{self.folder}/go.mod does not pin {self.module}")
        return found[1]


MODULES = (
    Module("etcd", "go.etcd.io/etcd/server/v3", {"etcd": ""}, "half a minute"),
    Module("kwok", "sigs.k8s.io/kwok", {"kwok": "/cmd/kwok"}, "one minute"),
    Module(
        "kubernetes",
        "k8s.io/kubernetes",
        {name: f"/cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")},
        "five minutes",
    ),
)


def main() -> None:
    """Build what is missing, one build at a time on this machine."""
    if os.environ.get("KUBEBUILDER_ASSETS"):
        folder = BINARIES["find_binaries"]()
        print(f"control plane: KUBEBUILDER_ASSETS has everything ({folder})")
        return
    target: Path = BINARIES["get_cache_folder"]()
    target.mkdir(parents=True, exist_ok=True)
    with only_one(target / ".lock"):
        for unfinished in target.glob(f"{UNFINISHED}*"):
            shutil.rmtree(unfinished)  # of a build that was killed: nobody else builds now
        for module in MODULES:
            wanted = {
                name: package
                for name, package in module.packages.items()
                if version_of(target / name, module) != module.pinned
            }
            if wanted:
                build(module, wanted, target)
    print(f"control plane: Kubernetes {KUBERNETES_VERSION} is in {target}")


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Hold the lock; the system frees it also when this process is killed."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("control plane: another build is running; waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def version_of(program: Path, module: Module) -> str | None:
    """The version of the module that a program was built from; None when there is no such program.

    Without Go to ask, a program that is there counts as right: nothing could be built anyway.
    """
    if not os.access(program, os.X_OK):
        return None
    if shutil.which("go") is None:
        return module.pinned
    told = subprocess.run(["go", "version", "-m", str(program)], capture_output=True, text=True, check=False).stdout
    found = re.search(rf"^\s+(?:dep|mod)\s+{re.escape(module.module)}\s+(\S+)", told, re.MULTILINE)
    return found[1] if found else None


def build(module: Module, wanted: dict[str, str], target: Path) -> None:
    """Build some programs of one module, and move each to its place when it is whole."""
    check_go(module)
    print(f"control plane: building {', '.join(wanted)} {module.pinned} (about {module.estimate})", flush=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=target) as building:
        # With one package, -o names the program; with several, the folder.
        output = f"{building}/{next(iter(wanted))}" if len(wanted) == 1 else f"{building}/"
        command = ["go", "build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath"]
        command += ["-ldflags", link_flags(module), "-o", output]
        command += [module.module + package for package in wanted.values()]
        # Nothing of these programs needs C, and so none of them needs this machine's C library.
        environment = os.environ | {"CGO_ENABLED": "0"}
        printed = []
        with subprocess.Popen(
            command, cwd=HERE / module.folder, env=environment, stderr=subprocess.PIPE, text=True
        ) as compiler:
            assert compiler.stderr is not None
            for line in compiler.stderr:
                printed.append(line.strip())
                if len(printed) % PROGRESS_LINES == 0:
                    print(f"control plane:   {len(printed)} modules and packages", flush=True)
        if compiler.returncode != 0:
            raise BuildError(f"{', '.join(wanted)} could not be built: {cause(printed)}")
        for name in wanted:
            (Path(building) / name).rename(target / name)


def check_go(module: Module) -> None:
    """Find out now, in one sentence, what the compiler would say in many.

    Raises:
        BuildError: There is no Go, or it is too old for the go.mod and may not fetch a newer one.
    """
    needed = re.search(r"^go (\S+)", (HERE / module.folder / "go.mod").read_text(), re.MULTILINE)
    assert needed is not None
    if shutil.which("go") is None:
        raise BuildError(
            f"Go {needed[1]} or newer is needed and there is no `go` in PATH: install it, "
            "or point KUBEBUILDER_ASSETS at a folder with " + ", ".join(BINARIES["PROGRAMS"])
        )
    asked = subprocess.run(["go", "env", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, text=True, check=True)
    version, toolchain = asked.stdout.split()
    if toolchain == "local" and numbers(version) < numbers(needed[1]):
        raise BuildError(f"Go {needed[1]} or newer is needed, found {version.removeprefix('go')}")


def numbers(version: str) -> tuple[int, ...]:
    """``go1.26.3`` and ``1.26.3`` as something that can be compared."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def link_flags(module: Module) -> str:
    """No symbol tables; and for Kubernetes the version, which its own build writes into the programs."""
    flags = ["-s", "-w"]
    if module.folder == "kubernetes":
        major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
        version = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor}
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {package}.{name}={value}" for name, value in version.items()]
    return " ".join(flags)


def cause(printed: list[str]) -> str:
    """The line of Go's output that says what went wrong; the others name packages and downloads."""
    for line in printed:
        if re.search(r"dial tcp|no such host|timeout|connection (refused|reset)|TLS handshake", line):
            return f"the Go modules could not be fetched ({line})"
    # With -v, a package that was compiled is a line without a space.
    sentences = [line for line in printed if " " in line and not line.startswith(("go: downloading", "#"))]
    return sentences[0] if sentences else "go build did not say why"


if __name__ == "__main__":
    try:
        main()
    except (BuildError, LookupError) as error:
        sys.exit(f"control plane: {error}")
