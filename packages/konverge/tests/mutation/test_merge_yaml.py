from __future__ import annotations

import pytest
import yaml

from konverge.kube import Object
from konverge.mutation import ConfigMapDataEditor


def merge_text(text: str | None, patch: str) -> str:
    obj: Object = {"data": {} if text is None else {"app.yaml": text}}
    ConfigMapDataEditor(obj).merge_yaml("app.yaml", patch)
    found: str = obj["data"]["app.yaml"]
    return found


@pytest.mark.parametrize(
    ("text", "patch", "expected"),
    [
        pytest.param(None, "# kept\na: 1\n", "# kept\na: 1\n", id="an absent entry takes the patch as it is"),
        pytest.param("", "a: 1\n", "a: 1\n", id="an empty entry takes the patch as it is"),
        pytest.param("a: 1\n", "", "a: 1\n", id="an empty patch changes nothing"),
        pytest.param("a: 1\nb: 2\n", "b: 3\nc: 4\n", "a: 1\nb: 3\nc: 4\n", id="keys keep their place"),
        pytest.param(
            "server:\n  port: 1\n  host: x\n", "server:\n  port: 2\n", "server:\n  port: 2\n  host: x\n", id="deep"
        ),
        pytest.param("a: [1, 2]\n", "a: [3]\n", "a: [3]\n", id="a list is replaced"),
        pytest.param("a:\n  b: 1\n", "a: none\n", "a: none\n", id="a mapping gives way to a scalar"),
        pytest.param(
            "on: yes\nat: 12:30\nmode: 0644\nday: 2026-01-31\nquoted: '1'\n",
            "extra: ~\n",
            "on: yes\nat: 12:30\nmode: 0644\nday: 2026-01-31\nquoted: '1'\nextra: ~\n",
            id="scalars keep their spelling",
        ),
    ],
)
def test_yaml_merges(text: str | None, patch: str, expected: str) -> None:
    assert merge_text(text, patch) == expected


@pytest.mark.parametrize(
    ("text", "patch", "message"),
    [
        pytest.param("a: [", "a: 1", "app.yaml: expected one YAML document", id="entry"),
        pytest.param("a: 1", "a: [", "patch of app.yaml: expected one YAML document", id="patch"),
        pytest.param("a: 1", "a: 1\n---\nb: 2", "patch of app.yaml: expected one YAML document", id="two documents"),
    ],
)
def test_what_is_no_yaml_is_named(text: str, patch: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merge_text(text, patch)


@pytest.mark.timeout(10)
def test_aliases_that_stand_for_billions_of_nodes_merge_at_once() -> None:
    levels = "".join(f"l{n}: &l{n} {{a: *l{n - 1}, b: *l{n - 1}}}\n" for n in range(1, 40))
    bomb = f"l0: &l0 {{a: 1}}\n{levels}"
    assert len(merge_text(bomb, bomb.replace("a: 1", "a: 2"))) < 10 * len(bomb)


def test_an_anchor_of_the_entry_still_means_the_same() -> None:
    text = "base: &base {size: 1}\nuses: *base\n"
    assert yaml.safe_load(merge_text(text, "more: 1\n")) == {"base": {"size": 1}, "uses": {"size": 1}, "more": 1}
