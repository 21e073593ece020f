"""The cost of the validation of a box of 1,000 lines: read, validate, and compile every step.

The floor is the YAML library alone, with the same text.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import yaml

from konverge_box._internal.runtime.box_validation import find_box_errors

_GOAL_SECONDS = 0.5
_ROUNDS = 7
_CUSTOM_RESOURCES = 40

_HEADER = """\
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata:
  name: many
spec:
  crds:
"""

_CUSTOM_RESOURCE = """\
    web{0}:
      resource: {{apiVersion: bench.konverge.dev/v1, kind: Web{0}}}
      normalize:
        spec: {{host: "{{{{ spec.host | default(metadata.name ~ '{0}') | toLower }}}}"}}
      mutation:
        - {{field: spec.replicas, default: {0}}}
      validation:
        - field: spec.image
          notSuffix: ":latest"
          message: "{{{{ spec.image }}}} is not version {0}"
      cross:
        - {{apiVersion: v1, kind: ConfigMap, as: settings, selector: {{name: "{{{{ spec.host }}}}-{0}"}}}}
      onReconcile:
        deployments:
          - image: "{{{{ spec.image }}}}"
            replicas: "{{{{ spec.replicas | default({0}) }}}}"
            env: {{NAME: "{{{{ metadata.name }}}}-{0}", COLOUR: "{{{{ cross.settings.data.hue | default('{0}') }}}}"}}
            resources: {{requests: {{cpu: 100m}}}}
            when: [{{field: spec.tier, in: [small, large]}}]
        services:
          - port: 80
      status:
        fields:
          - path: ready
            type: integer
            value: "{{{{ children.deployment.status.readyReplicas | default({0}) }}}}"
"""


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _lint(text: str) -> None:
    assert find_box_errors(text) == ()


def measure() -> Iterator[str]:
    """Run the measurement; yield a line for the table."""
    text = _HEADER + "".join(map(_CUSTOM_RESOURCE.format, range(_CUSTOM_RESOURCES)))
    lines = text.count("\n")
    assert lines >= 1_000
    floor = statistics.median(_seconds(lambda: yaml.load(text, Loader=yaml.CSafeLoader)) for _ in range(_ROUNDS))
    first, *others = (_seconds(lambda: _lint(text)) for _ in range(_ROUNDS))
    yield (
        f"lint of a box of {lines:,} lines: {statistics.median(others):.2f} s of CPU, the first in a process "
        f"{first:.2f} s (goal: <= {_GOAL_SECONDS:g}); reading its YAML alone {floor:.2f} s"
    )
