"""The cost of importing the client: the HTTP library and the YAML parser are imported on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import konverge.client


def test_importing_the_client_imports_neither_http_nor_yaml() -> None:
    code = "import sys, konverge.client; print(sorted({'aiohttp', 'yaml', 'multidict', 'yarl'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"


@pytest.mark.parametrize("name", konverge.client.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert hasattr(konverge.client, name)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = konverge.client.Nothing  # type: ignore[attr-defined]  # the mistake
