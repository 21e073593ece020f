"""Where the programs of the real control plane are, and which version is expected.

This module is the one place that knows the version and the folder. The build script (``tools/controlplane/build.py``)
runs it as a file, before anything is installed: it imports nothing but the standard library.
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
    """Not all programs are there; the message says where they were looked for and how to get them."""


def get_cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's cache in which programs of the expected version are kept, there or not."""
    home = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "konverge" / "controlplane" / KUBERNETES_VERSION


def find_binaries(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds all of `PROGRAMS`.

    `KUBEBUILDER_ASSETS` decides alone when it is set, in whatever version its programs are. envtest's own archives have
    only etcd, kube-apiserver and kubectl in them, which is not enough: nothing would collect garbage or run a pod.

    Raises:
        BinariesNotFoundError: A program is absent.
    """
    chosen = environment.get("KUBEBUILDER_ASSETS")
    folder = Path(chosen) if chosen else get_cache_folder(environment)
    absent = [program for program in PROGRAMS if shutil.which(folder / program) is None]
    if absent:
        where = f"KUBEBUILDER_ASSETS ({folder})" if chosen else str(folder)
        raise BinariesNotFoundError(
            f"{where} has no {', '.join(absent)}: run `make control-plane` (needs Go and some minutes, once), "
            "or point KUBEBUILDER_ASSETS at a folder that has them"
        )
    return folder
