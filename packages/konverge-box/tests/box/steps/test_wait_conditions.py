"""The description of ``waitFor`` conditions in words."""

import pytest

from konverge_box._internal.file.model import ComparisonSpec
from konverge_box._internal.steps.wait_conditions import describe_condition
from tests.box.file.sample_boxes import load_custom_resource

SAMPLES = {"in": "[a]", "notIn": "[a]", "between": "[1, 2]", "notBetween": "[1, 2]", "typeOf": "list", "regex": "a"}
OPERATORS = ComparisonSpec.__struct_encode_fields__
NUMBERS = ("greaterThan", "lessThan", "min", "max")


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_of_the_file_has_words(operator: str) -> None:
    value = SAMPLES.get(operator, "true" if "xists" in operator else "1" if operator in NUMBERS else "a")
    steps = f"onReconcile: {{configMaps: [{{waitFor: [{{field: spec.a, {operator}: {value}}}]}}]}}"
    [condition] = load_custom_resource(steps).on_reconcile[0].resources[0].wait_for

    assert describe_condition(condition).startswith("spec.a ")
