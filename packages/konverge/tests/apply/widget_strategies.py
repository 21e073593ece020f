"""Hypothesis strategies for widgets of every shape."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from konverge.kube import Object
from tests.apply.widgets import widget

_letters = st.sampled_from(["a", "b", "c"])
_texts = st.dictionaries(_letters, _letters)
_free = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2), _letters),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_letters, inner, max_size=2)),
    max_leaves=5,
)


def _port(port: int, protocol: str | None, name: str | None) -> dict[str, Any]:
    return {
        name: value for name, value in {"port": port, "protocol": protocol, "name": name}.items() if value is not None
    }


_ports = st.lists(
    st.builds(_port, st.integers(1, 3), st.sampled_from([None, "TCP", "UDP"]), st.sampled_from([None, "x", "y"])),
    max_size=4,
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
)

specs: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "text": _letters,
        "map": _texts,
        "inner": st.fixed_dictionaries({}, optional={"a": _letters, "b": _letters}),
        "atomic": st.fixed_dictionaries({}, optional={"a": _letters, "b": _letters}),
        "ports": _ports,
        "set": st.lists(_letters, max_size=3, unique=True),
        "list": st.lists(st.fixed_dictionaries({}, optional={"x": st.integers(0, 2)}), max_size=2),
        "free": st.dictionaries(_letters, _free, max_size=3),
        "port": st.sampled_from([80, "80", "http"]),
    },
)

widgets: st.SearchStrategy[Object] = st.builds(widget, specs, labels=_texts, name=st.just("w"))
