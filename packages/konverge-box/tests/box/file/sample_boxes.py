"""Texts of boxes for the tests, without parts that are irrelevant to a test."""

from __future__ import annotations

from textwrap import dedent, indent

from konverge_box._internal.file import BoxResource, CustomResource, find_file_errors, load_box

HEADER = """\
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata: {name: test}
spec:
  crds:
    web:
      resource: {apiVersion: test.konverge.dev/v1, kind: Web}
"""
SECOND = """\
    db:
      resource: {apiVersion: test.konverge.dev/v1, kind: Db}
"""


def build_box_text(steps: str, second: str = "") -> str:
    """Return a box whose custom resource ``web`` has these steps, from line 8; with a second part also ``db``."""
    text = HEADER + indent(dedent(steps).strip("\n"), " " * 6) + "\n"
    return text + SECOND + indent(dedent(second).lstrip("\n"), " " * 6) if second else text


def find_errors(steps: str, second: str = "") -> list[str]:
    """Return the errors of such a box: line and column, the field under the custom resource, the message."""
    found = find_file_errors(build_box_text(steps, second), file="f")
    return [str(each).removeprefix("f:").replace("spec.crds.web.", "") for each in found]


def load_custom_resource(steps: str, second: str = "") -> CustomResource:
    """Return the custom resource ``web`` of such a box."""
    return load_box(build_box_text(steps, second)).spec.crds["web"]


def load_resource(steps: str) -> BoxResource:
    """Return the only resource of ``onReconcile`` in such a box."""
    (group,) = load_custom_resource(steps).on_reconcile
    (found,) = group.resources
    return found
