"""The process in which ``konverge rbac`` runs the functions of an operator.

The request is JSON on stdin, the `Observation` is JSON on stdout. Whatever the author's code prints is dropped: the
command has loaded the same file already, and printed it.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import msgspec

from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.user_code import call_with_timeout
from konverge._internal.operator.observed_access import Observation
from konverge.errors import format_error
from konverge_cluster._internal.testing.observed_run import forbid_side_effects, observe_operator

__all__ = ["main"]


class _Request(msgspec.Struct):
    operator: str
    objects: list[dict[str, Any]]
    in_namespaces: bool
    records_events: bool
    path: list[str]
    seconds: float


def main() -> None:
    """Read the request, run the operator, and write the observation."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=_Request)
    answer = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    sys.path[:] = request.path
    sys.dont_write_bytecode = True
    logging.disable()
    try:
        operator = load_operator(parse_operator_reference(request.operator))
        modules = [*sys.modules.values()]
        forbid_side_effects()
        observation = call_with_timeout(
            request.seconds,
            lambda: observe_operator(
                operator,
                request.objects,
                in_namespaces=request.in_namespaces,
                records_events=request.records_events,
                modules=modules,
            ),
            "running them for sample owners",
        )
    except Exception as error:  # noqa: BLE001  # an author's code can break anything in its process
        observation = Observation(gaps=(f"the functions were not run: {' '.join(format_error(error).split())}",))
    answer.write(msgspec.json.encode(observation))
    answer.flush()
    os._exit(0)  # threads of the author must not delay the end


if __name__ == "__main__":
    main()
