"""Lock the dependencies of the development environment with versions and hashes: `make constraints`.

Versions stay the same while they satisfy the packages; with --upgrade they are the newest. One file contains the
dependencies for Python 3.11 to 3.14 on Linux and macOS, with the hashes of their wheels from pip's index. pip compares
each download with them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "tools" / "constraints.txt"
BENCH_LOCK = ROOT / "tools" / "bench-constraints.txt"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("linux", "darwin")
# Additional packages: the build tools of the project (also for an editable install), and pip itself.
TOOLS = ("editables", "pip")
_WHEEL_PLATFORM = re.compile(r"any|(many|musl)linux.*_(x86_64|aarch64)|macosx_.*_(x86_64|arm64|universal2)")
_INDEX_TYPE = "application/vnd.pypi.simple.v1+json"
_HEADER = """\
# {what}, with versions and hashes of wheels: pip accepts nothing else.
# This is for developers; the dependencies of konverge at run time are in pyproject.toml.
# Written by: make constraints (newer versions: make constraints UPGRADE=--upgrade).
"""


class Package(NamedTuple):
    """One package as pip resolved it."""

    name: str
    version: str
    requires: tuple[Requirement, ...]
    extras: frozenset[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    upgrade = parser.parse_args().upgrade
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*_of_packages(), *project["dependency-groups"]["dev"], *TOOLS]
    pins = [] if upgrade else [*_pins(LOCK), *_pins(BENCH_LOCK)]
    packages = _resolve(wanted, pins)
    pins = [f"{package.name}=={package.version}" for package in packages.values()] + (
        [] if upgrade else [*_pins(BENCH_LOCK)]
    )
    with_bench = _resolve([*wanted, *project["dependency-groups"]["bench"]], pins)
    _write(LOCK, "Packages of the development environment", packages)
    _write(
        BENCH_LOCK,
        "Additional packages of the benchmarks",
        {name: package for name, package in with_bench.items() if name not in packages},
    )


def _of_packages() -> Iterator[str]:
    """Return the dependencies of the packages of this repository: required, for a terminal, and for builds."""
    for file in sorted(ROOT.glob("packages/*/pyproject.toml")):
        package = tomllib.loads(file.read_text())
        extras = package["project"].get("optional-dependencies", {})
        found = [*package["project"]["dependencies"], *extras.get("terminal", ()), *package["build-system"]["requires"]]
        yield from (text for text in found if not Requirement(text).name.startswith("konverge"))


def _pins(lock: Path) -> Iterator[str]:
    for line in lock.read_text().splitlines() if lock.exists() else ():
        if found := re.match(r"[A-Za-z0-9._-]+==[^ \\]+", line):
            yield found[0]


def _resolve(wanted: Iterable[str], pins: Iterable[str]) -> dict[str, Package]:
    """Return all packages for any of the Python versions: pip resolves for its own; the others' are added."""
    wanted, pins = list(wanted), list(pins)
    while True:
        packages = _ask_pip(wanted, pins)
        missing = _missing(packages, [Requirement(text) for text in wanted])
        if not missing:
            return packages
        wanted += sorted(missing)


def _ask_pip(wanted: list[str], pins: list[str]) -> dict[str, Package]:
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder) / "pins", Path(folder) / "report"
        names = {canonicalize_name(Requirement(pin).name): pin for pin in pins}
        constraints.write_text("\n".join(names.values()))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--only-binary=:all:", f"--report={report}", f"--constraint={constraints}", *wanted]
        subprocess.run(command, check=True)
        found = json.loads(report.read_text())
    packages: dict[str, Package] = {}
    for entry in found["install"]:
        metadata = entry["metadata"]
        requires = tuple(Requirement(text) for text in metadata.get("requires_dist", ()))
        extras = frozenset(entry.get("requested_extras", ()))
        packages[canonicalize_name(metadata["name"])] = Package(metadata["name"], metadata["version"], requires, extras)
    return packages


def _missing(packages: Mapping[str, Package], roots: list[Requirement]) -> set[str]:
    """Return packages that another Python version needs and that pip did not choose for its own."""
    missing: set[str] = set()
    for version, platform in itertools.product(VERSIONS, PLATFORMS):
        environment = {
            "python_version": version,
            "python_full_version": f"{version}.0",
            "sys_platform": platform,
            "platform_system": platform.capitalize(),
        }
        seen: set[tuple[str, str]] = set()
        waiting = [(root, "") for root in roots]
        while waiting:
            requirement, extra = waiting.pop()
            if requirement.marker is not None and not requirement.marker.evaluate({**environment, "extra": extra}):
                continue
            name = canonicalize_name(requirement.name)
            if name not in packages:
                requirement.marker = None
                missing.add(str(requirement))
                continue
            for each in ("", *requirement.extras):
                if (name, each) not in seen:
                    seen.add((name, each))
                    waiting += ((needed, each) for needed in packages[name].requires)
    return missing


def _write(lock: Path, what: str, packages: Mapping[str, Package]) -> None:
    index = _index_url()
    with ThreadPoolExecutor(8) as threads:
        hashes = threads.map(lambda package: _hashes(index, package), packages.values())
        found = dict(zip(packages, hashes, strict=True))
    lines = [_HEADER.format(what=what).rstrip("\n")]
    for name in sorted(packages):
        package = packages[name]
        lines.append(f"{package.name}=={package.version} \\")
        lines.append(" \\\n".join(f"    --hash=sha256:{digest}" for digest in found[name]))
    lock.write_text("\n".join(lines) + "\n")
    print(f"{lock.relative_to(ROOT)}: {len(packages)} packages, {sum(map(len, found.values()))} wheels")


def _index_url() -> str:
    """Return the URL of pip's index on this machine."""
    output = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if output:
        return output
    script = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def _hashes(index: str, package: Package) -> list[str]:
    url = f"{index.rstrip('/')}/{canonicalize_name(package.name)}/"
    request = urllib.request.Request(url, headers={"Accept": _INDEX_TYPE})
    with urllib.request.urlopen(request, timeout=60) as answer:
        files: list[dict[str, Any]] = json.load(answer)["files"]
    found = sorted(file["hashes"]["sha256"] for file in files if _is_wanted(file["filename"], package.version))
    if not found:
        sys.exit(
            f"{package.name} {package.version}: expected a wheel for {', '.join(VERSIONS)}, found none at the index"
        )
    return found


def _is_wanted(filename: str, version: str) -> bool:
    """Return True for a wheel of that version for one of the Python versions; sources would run code during a build."""
    try:
        _, found, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return False
    return found == Version(version) and any(
        _WHEEL_PLATFORM.fullmatch(tag.platform) and _is_for_one(tag.interpreter, tag.abi) for tag in tags
    )


def _is_for_one(interpreter: str, abi: str) -> bool:
    if interpreter in ("py3", *(f"py{version.replace('.', '')}" for version in VERSIONS)):
        return True
    if abi == "abi3":  # valid for all later versions
        return interpreter.startswith("cp3") and int(interpreter[3:] or 0) <= int(VERSIONS[-1].partition(".")[2])
    return abi in ("none", interpreter) and interpreter in (f"cp{version.replace('.', '')}" for version in VERSIONS)


if __name__ == "__main__":
    main()
