"""Patterns of schemas that the API server's engine cannot parse are refused with its message."""

from __future__ import annotations

import pytest

from konverge.errors import InvalidError
from konverge.kube import Object
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio

PARSED = [
    "[[:alpha:]]",
    "[[:^alpha:]]",
    "[[:foo]",
    r"\p{Greek}",
    r"\p{greek}",
    r"\p{Letter}",
    r"\p{uppercase letter}",
    r"\p{LC}",
    r"\p{Any}",
    r"\p{^L}\pN",
]
# The part that is no class, of each pattern.
REFUSED = {
    "[[:foo:]]": "[:foo:]",
    "[[:^foo:]]": "[:^foo:]",
    "[a[:Alpha:]]": "[:Alpha:]",
    r"\p{Foo}": r"\p{Foo}",
    r"[\p{Foo}]": r"\p{Foo}",
    r"\P{^Foo}": r"\P{^Foo}",
    r"\p{Grek}": r"\p{Grek}",
    r"\p{Lx}": r"\p{Lx}",
    r"\p{Old_Italic}": r"\p{Old_Italic}",
    r"\pF": r"\pF",
    r"\p{L": r"\p{L",
}


def definition(cluster: Cluster, pattern: str) -> Object:
    spec = {"type": "object", "properties": {"code": {"type": "string", "pattern": pattern}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return Widgets(cluster, f"{cluster.namespace}.konverge.test").definition(schema=schema)


@pytest.mark.parametrize("pattern", PARSED)
async def test_a_pattern_is_accepted(cluster: Cluster, pattern: str) -> None:
    await cluster.client.create(definition(cluster, pattern), dry_run=True)


@pytest.mark.parametrize("pattern", REFUSED)
async def test_a_pattern_with_an_unknown_class_is_refused(cluster: Cluster, pattern: str) -> None:
    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(definition(cluster, pattern), dry_run=True)

    (cause,) = refused.value.causes
    reason = f"error parsing regexp: invalid character class range: `{REFUSED[pattern]}`"
    assert cause.message.endswith(f"must be a valid regular expression, but isn't: {reason}")


# Letters of each script by what they are for, not by their names.
MEMBERS = {
    r"^\p{Common}$": ("1", "ー", "\u3000", "a"),
    r"^\p{Inherited}$": ("\u0301", "a"),
    r"^\p{Latin}$": ("ª", "Å", "K", "\u03b1"),
    r"^\p{Han}$": ("々", "中", "㇀", "あ"),
    r"^\P{Common}$": ("a", "1"),
    r"^[\p{Greek}\d]$": ("Ω", "µ", "5", "ͅ"),
}


@pytest.mark.parametrize("pattern", MEMBERS)
async def test_letters_belong_to_the_scripts_of_the_server(cluster: Cluster, pattern: str) -> None:
    # A default is validated with the definition: no object is needed.
    answers = []
    for letter in MEMBERS[pattern]:
        wanted = definition(cluster, pattern)
        spec = wanted["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["code"]["default"] = letter
        try:
            await cluster.client.create(wanted, dry_run=True)
        except InvalidError:
            answers.append(False)
        else:
            answers.append(True)

    assert answers == SCRIPTS[pattern]


SCRIPTS = {
    r"^\p{Common}$": [True, True, True, False],
    r"^\p{Inherited}$": [True, False],
    r"^\p{Latin}$": [True, True, True, False],
    r"^\p{Han}$": [True, True, False, False],
    r"^\P{Common}$": [True, False],
    r"^[\p{Greek}\d]$": [True, False, True, False],
}
