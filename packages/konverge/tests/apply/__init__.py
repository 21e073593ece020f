import pytest

pytest.register_assert_rewrite("tests.apply.server_comparison")
