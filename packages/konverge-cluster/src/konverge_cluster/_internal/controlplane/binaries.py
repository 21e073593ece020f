"""The location and the expected version of the control plane's programs.

Only this module knows the version and the folder. The build script (``tools/controlplane/build.py``) runs it as a file
before anything is installed, so it imports only the standard library.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

__all__ = ["KUBERNETES_VERSION", "PROGRAMS", "BinariesNotFoundError", "find_binaries", "get_cache_folder"]

KUBERNETES_VERSION = "v1.36.3"

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl")


class BinariesNotFoundError(LookupError):
    """Some programs are absent; the message contains the searched folder and how to get them."""


def get_cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder for programs of the expected version; it need not exist."""
    home = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "konverge" / "controlplane" / KUBERNETES_VERSION


def find_binaries(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that contains all of `PROGRAMS`.

    If `KUBEBUILDER_ASSETS` is set, only that folder counts, and its programs can have any version. The archives of
    envtest contain only etcd, kube-apiserver and kubectl. That is not enough: garbage collection and pods need the
    others.

    Raises:
        BinariesNotFoundError: A program is absent.
    """
    chosen = environment.get("KUBEBUILDER_ASSETS")
    folder = Path(chosen) if chosen else get_cache_folder(environment)
    absent = [program for program in PROGRAMS if shutil.which(folder / program) is None]
    if absent:
        where = f"KUBEBUILDER_ASSETS ({folder})" if chosen else str(folder)
        raise BinariesNotFoundError(
            f"{where} has no {', '.join(absent)}: run `make control-plane` once (it needs Go and some minutes), "
            "or set KUBEBUILDER_ASSETS to a folder that contains them"
        )
    return folder
