"""Build the missing programs of the real control plane into the user's cache folder.

    python tools/controlplane/build.py

It needs only Go; the go.mod files beside this script pin the versions. The folder and the version in its name come from
`binaries.py` of the package, which this script runs as a file, so that it works before konverge is
installed. A program is built again if it was built from another version.
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
    str(
        HERE.parents[1]
        / "packages"
        / "konverge-cluster"
        / "src"
        / "konverge_cluster"
        / "_internal"
        / "controlplane"
        / "binaries.py"
    )
)
KUBERNETES_VERSION: str = BINARIES["KUBERNETES_VERSION"]
UNFINISHED = ".building-"
PROGRESS_LINES = 250


class BuildError(Exception):
    """The build cannot continue; the message contains the reason and the next step."""


@dataclass(frozen=True)
class Module:
    """A folder with a go.mod, and the programs from the module that it pins.

    Args:
        folder: The name of the folder.
        module: The Go module that determines the version of the programs.
        packages: The package of each program, relative to the module.
        estimate: The duration of a build from nothing on two cores.
    """

    folder: str
    module: str
    packages: dict[str, str]
    estimate: str

    @property
    def pinned(self) -> str:
        """The version of the module in go.mod."""
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
    """Build the missing programs, with one build at a time on this machine."""
    if os.environ.get("KUBEBUILDER_ASSETS"):
        folder = BINARIES["find_binaries"]()
        print(f"control plane: KUBEBUILDER_ASSETS has everything ({folder})")
        return
    target: Path = BINARIES["get_cache_folder"]()
    target.mkdir(parents=True, exist_ok=True)
    with only_one(target / ".lock"):
        for unfinished in target.glob(f"{UNFINISHED}*"):
            shutil.rmtree(unfinished)  # from a killed build: this process holds the lock
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
    """Hold the lock; the system releases it even if this process is killed."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("control plane: another build is running; waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def version_of(program: Path, module: Module) -> str | None:
    """Return the version of the module in a program; None if the program does not exist.

    Without Go, an existing program counts as right, since no build would be possible.
    """
    if not os.access(program, os.X_OK):
        return None
    if shutil.which("go") is None:
        return module.pinned
    output = subprocess.run(["go", "version", "-m", str(program)], capture_output=True, text=True, check=False).stdout
    found = re.search(rf"^\s+(?:dep|mod)\s+{re.escape(module.module)}\s+(\S+)", output, re.MULTILINE)
    return found[1] if found else None


def build(module: Module, wanted: dict[str, str], target: Path) -> None:
    """Build programs of one module, and move each to its place when it is complete."""
    check_go(module)
    print(f"control plane: building {', '.join(wanted)} {module.pinned} (about {module.estimate})", flush=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=target) as building:
        # With one package, -o is the program; with several, the folder.
        output = f"{building}/{next(iter(wanted))}" if len(wanted) == 1 else f"{building}/"
        command = ["go", "build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath"]
        command += ["-ldflags", link_flags(module), "-o", output]
        command += [module.module + package for package in wanted.values()]
        # These programs need no C code, and so no C library of this machine.
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
    """Check the Go installation, which gives one clear message instead of a compiler's many.

    Raises:
        BuildError: Go is not installed, or it is too old for the go.mod and cannot download a newer version.
    """
    needed = re.search(r"^go (\S+)", (HERE / module.folder / "go.mod").read_text(), re.MULTILINE)
    assert needed is not None
    if shutil.which("go") is None:
        raise BuildError(
            f"Go {needed[1]} or newer is needed and there is no `go` in PATH: install it, "
            "or point KUBEBUILDER_ASSETS at a folder with " + ", ".join(BINARIES["PROGRAMS"])
        )
    reported = subprocess.run(["go", "env", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, text=True, check=True)
    version, toolchain = reported.stdout.split()
    if toolchain == "local" and numbers(version) < numbers(needed[1]):
        raise BuildError(f"Go {needed[1]} or newer is needed, found {version.removeprefix('go')}")


def numbers(version: str) -> tuple[int, ...]:
    """Convert ``go1.26.3`` or ``1.26.3`` to numbers that can be compared."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def link_flags(module: Module) -> str:
    """Return the linker flags: no symbol tables, and for Kubernetes the version, as in its own build."""
    flags = ["-s", "-w"]
    if module.folder == "kubernetes":
        major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
        version = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor}
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {package}.{name}={value}" for name, value in version.items()]
    return " ".join(flags)


def cause(printed: list[str]) -> str:
    """Return the line of Go's output with the error; the others name packages and downloads."""
    for line in printed:
        if re.search(r"dial tcp|no such host|timeout|connection (refused|reset)|TLS handshake", line):
            return f"the Go modules could not be fetched ({line})"
    # With -v, the line of a compiled package contains no space.
    sentences = [line for line in printed if " " in line and not line.startswith(("go: downloading", "#"))]
    return sentences[0] if sentences else "go build did not say why"


if __name__ == "__main__":
    try:
        main()
    except (BuildError, LookupError) as error:
        sys.exit(f"control plane: {error}")
