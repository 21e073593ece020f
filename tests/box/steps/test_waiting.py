"""What a resource waits for, in words."""

import pytest

from konverge.box.file.model import Comparison
from konverge.box.steps.waiting import told
from tests.box.file.boxes import loaded

SAMPLES = {"in": "[a]", "notIn": "[a]", "between": "[1, 2]", "notBetween": "[1, 2]", "typeOf": "list", "regex": "a"}
OPERATORS = Comparison.__struct_encode_fields__
NUMBERS = ("greaterThan", "lessThan", "min", "max")


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_of_the_file_has_words(operator: str) -> None:
    value = SAMPLES.get(operator, "true" if "xists" in operator else "1" if operator in NUMBERS else "a")
    steps = f"onReconcile: {{configMaps: [{{waitFor: [{{field: spec.a, {operator}: {value}}}]}}]}}"
    [condition] = loaded(steps).on_reconcile[0].resources[0].wait_for

    assert told(condition).startswith("spec.a ")
