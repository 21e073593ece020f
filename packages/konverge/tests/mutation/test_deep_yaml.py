import pytest

from konverge._internal.mutation.editors.yaml_merge import merge_yaml_documents


def test_a_text_that_nests_too_deep_is_refused_and_ends_no_process() -> None:
    with pytest.raises(ValueError, match="nests deeper than 500 levels"):
        merge_yaml_documents("[" * 100_000, "a: 1", "settings.yaml")
