from __future__ import annotations

import pytest

from konverge.mutation import (
    ContainerSelector,
    all_containers,
    container_at_index,
    container_named,
    container_not_named,
    containers_named,
    containers_not_named,
)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(all_containers(), ["app", "proxy", "agent"], id="all"),
        pytest.param(container_named("proxy"), ["proxy"], id="named"),
        pytest.param(container_named("absent"), [], id="named, absent"),
        pytest.param(containers_named("agent", "app"), ["app", "agent"], id="several named"),
        pytest.param(containers_named(), [], id="none named"),
        pytest.param(container_not_named("proxy"), ["app", "agent"], id="not named"),
        pytest.param(containers_not_named("app", "proxy"), ["agent"], id="several not named"),
        pytest.param(container_at_index(0), ["app"], id="at index"),
        pytest.param(container_at_index(3), [], id="past the end"),
    ],
)
def test_a_selector_picks_its_containers(selector: ContainerSelector, expected: list[str]) -> None:
    names = ["app", "proxy", "agent"]
    assert [name for index, name in enumerate(names) if selector(index, {"name": name})] == expected
