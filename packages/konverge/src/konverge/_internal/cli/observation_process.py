"""The process that runs an operator's functions for sample owners, and its time limit.

It is another process, because a function may block or end its process, and because side effects are forbidden there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec

import msgspec

from konverge._internal.cli.operator_file import OperatorReference
from konverge._internal.kube import Object
from konverge._internal.operator import Operator
from konverge._internal.operator.observed_access import Observation

__all__ = ["observe_functions"]

_WORKER = "konverge_cluster._internal.cli.observation_worker"
_SECONDS = 60.0
# Additional time for the process, whose own message about the time limit is more precise.
_PROCESS_SECONDS = 30.0


def observe_functions(
    operator: Operator,
    reference: OperatorReference,
    objects: Sequence[Object],
    *,
    in_namespaces: bool,
    records_events: bool,
    seconds: float = _SECONDS,
) -> Observation | None:
    """Run the functions of the operator on an embedded cluster.

    Args:
        operator: The operator.
        reference: Its file.
        objects: Owners from files, and other objects that exist before them.
        in_namespaces: True if each namespace of owners gets a role of its own.
        records_events: True if the operator records events.
        seconds: The time limit.

    Returns:
        None if there is nothing to run, or konverge-cluster is not installed. A run that fails is a gap.
    """
    has_functions = any(owner.functions for owner in operator.registered.declaration.owners)
    if reference.is_box or not has_functions or find_spec("konverge_cluster") is None:
        return None
    request = {
        "operator": str(reference),
        "objects": objects,
        "in_namespaces": in_namespaces,
        "records_events": records_events,
        "path": sys.path,
        "seconds": seconds,
    }
    # With -P, a file of the working directory cannot hide a module of konverge.
    with subprocess.Popen(
        [sys.executable, "-P", "-m", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as process:
        try:
            text = msgspec.json.encode(request, enc_hook=str)
            answer, _ = process.communicate(text, timeout=seconds + _PROCESS_SECONDS)
        except subprocess.TimeoutExpired:
            return Observation(gaps=(f"the functions were not run to their end: they took more than {seconds:g} s",))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    try:
        return msgspec.json.decode(answer, type=Observation)
    except msgspec.DecodeError:
        return Observation(gaps=(f"the functions were not run: their process ended with {process.returncode}",))
