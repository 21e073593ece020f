"""The check of an imported box: all validation errors, then a simulated pass over samples of its custom resources."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object
from konverge.clock import SimulatedLoop
from konverge.errors import ConfigurationError, KonvergeError, format_error
from konverge_box._internal.calls.scripted_answers import ScriptedAnswer
from konverge_box._internal.cli.box_simulate import build_samples, run_in_cluster
from konverge_box._internal.file import BoxFileError, OperatorBox
from konverge_box._internal.katalog import Finding
from konverge_box._internal.rendering import DEFAULT_TIME, Rendering, render_box
from konverge_box._internal.runtime.box_validation import load_valid_box
from konverge_box._internal.simulation import SimulatedCluster, StepReport, reconcile_until_steady

__all__ = ["check_imported_box"]

_NAMESPACE = "default"
_CYCLES = 5
_MAX_FILLED_FIELDS = 50
_MAX_ERRORS = 5
_ABSENT = re.compile(r"\b(spec(?:\.[A-Za-z_]\w*)+)(?:: [^ ]+)? is absent")
# It is a name, a number, a quantity and a port.
_SAMPLE_TEXT = "1"
_ANSWER = ScriptedAnswer(json={}, result=0)
_INSTEAD = "change the box; or give a custom resource with --object, and the responses of calls with --answers"


def check_imported_box(
    text: str, *, file: str, objects: Sequence[Object], given: Sequence[Object], answers: Mapping[str, ScriptedAnswer]
) -> list[Finding]:
    """Return why a box is invalid, or does not work in a simulation; nothing for a box that works.

    Args:
        text: The box.
        file: The name of the Katalog in findings.
        objects: The custom resources; by default samples of the schemas, and of the fields that expressions read.
        given: Other objects in the cluster.
        answers: The responses to calls; other calls get an empty one.

    Raises:
        konverge.errors.ConfigurationError: The embedded cluster is not installed.
    """
    try:
        box = load_valid_box(text, file=file)
    except BoxFileError as error:
        return [
            _build_finding(file, each.path, "the resulting box", f"it is invalid: {each.message}", "change it")
            for each in error.errors
        ]
    calls = (call.name for declared in box.spec.crds.values() for call in declared.external)
    answers = {**dict.fromkeys(calls, _ANSWER), **answers}
    reports: list[StepReport] = []

    async def simulate(cluster: SimulatedCluster) -> bool:
        run = partial(reconcile_until_steady, box, samples, cluster, cycles=_CYCLES)
        return await run(given=given, answers=answers, on_report=reports.append)

    try:
        samples = list(objects) or [_fill_sample(box, sample, answers) for sample in build_samples(box)]
        is_steady = run_in_cluster("embedded", _NAMESPACE, DEFAULT_TIME, simulate)
    except ConfigurationError:
        raise
    except KonvergeError as error:
        return [_build_finding(file, "the simulated pass", "the resulting box", format_error(error), _INSTEAD)]
    errors = dict.fromkeys(text for report in reports[-1:] for text in report.errors)
    if not errors and not is_steady:
        errors = {f"it still writes after {_CYCLES} passes": None}
    return [
        _build_finding(file, "the simulated pass", "the resulting box", error, _INSTEAD)
        for error in list(errors)[:_MAX_ERRORS]
    ]


def _build_finding(file: str, path: str, what: str, why: str, instead: str) -> Finding:
    return Finding(file=file, line=0, column=0, path=path, what=what, why=why, instead=instead)


def _fill_sample(box: OperatorBox, sample: Object, answers: Mapping[str, ScriptedAnswer]) -> Object:
    """Add the fields of the spec that expressions require and no schema declares."""
    declared = next(each for each in box.spec.crds.values() if each.resource.gvk == GroupVersionKind.of(sample))
    if declared.resource.schema is not None and "spec" in declared.resource.schema:
        return sample
    lists = {loop.field for resource in declared.resources for loop in resource.for_each}
    for _ in range(_MAX_FILLED_FIELDS):
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            rendering = runner.run(render_box(box, sample, answers=answers))
        found = _ABSENT.search(" ".join(_list_errors(rendering)))
        if found is None or not _set_field(sample["spec"], found[1], is_list=found[1] in lists):
            break
    return sample


def _list_errors(rendering: Rendering) -> list[str]:
    errors = [each.problem for step in rendering.steps for group in step.groups for each in group.objects]
    return [*errors, *(step.error for step in rendering.steps)]


def _set_field(spec: dict[str, Any], path: str, *, is_list: bool) -> bool:
    """Set a field of a spec; return False if it has a value or cannot have one."""
    *parents, name = path.split(".")[1:]
    for parent in parents:
        spec = spec.setdefault(parent, {})
        if not isinstance(spec, dict):
            return False
    if name in spec:
        return False
    spec[name] = [_SAMPLE_TEXT] if is_list else _SAMPLE_TEXT
    return True
