"""`konverge resolvers run`: what it says where it cannot run."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Konverge

pytestmark = pytest.mark.embedded


@pytest.mark.slow
def test_without_tektons_definition_it_does_not_say_that_it_installs_it(konverge: Konverge) -> None:
    done = konverge("resolvers", "run", "--local", "--tekton", "--only", "cluster", "--start-timeout", "0")
    assert done.returncode == 1
    assert "does not serve resolution.tekton.dev/v1beta1/ResolutionRequest" in done.stderr
    assert done.stderr.endswith("(this CRD belongs to Tekton: install Tekton, or remove --tekton)\n")
