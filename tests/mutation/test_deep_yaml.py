import pytest

from konverge.mutation.editors.merged_yaml import merged_yaml


def test_a_text_that_nests_too_deep_is_refused_and_ends_no_process() -> None:
    with pytest.raises(ValueError, match="nests deeper than 500 levels"):
        merged_yaml("[" * 100_000, "a: 1", "settings.yaml")
