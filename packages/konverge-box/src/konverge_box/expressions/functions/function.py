"""A function of expressions: a Python function, and what its signature says about its arguments.

A parameter's annotation decides what an argument must be, before the function is called. Two kinds of parameters are
not written by who calls it: `datetime` is the time of the pass, `Entropy` the source of random values.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from konverge_box.expressions.values import Absent, describe_value_type, is_number

__all__ = ["Function", "FunctionGroup", "FunctionParameter", "build_group"]

_UNDERSCORE = re.compile(r"_([a-z0-9])")


@dataclass(frozen=True, slots=True)
class ArgumentKind:
    """What an argument may be.

    Args:
        expected: In the words of messages.
        fits: Tells whether a value is of it.
        takes_absent: Whether a field that is not there is an argument, too.
    """

    expected: str
    fits: Callable[[Any], bool]
    takes_absent: bool = False


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_anything(value: object) -> bool:
    return True


_KINDS = {
    "str": ArgumentKind("text", lambda value: isinstance(value, str)),
    "int": ArgumentKind("an integer", _is_integer),
    "float": ArgumentKind("a number", is_number),
    "bool": ArgumentKind("a boolean", lambda value: isinstance(value, bool)),
    "list[Any]": ArgumentKind("a list", lambda value: isinstance(value, list)),
    "Mapping[str, Any]": ArgumentKind("a mapping", lambda value: isinstance(value, Mapping)),
    "str | float": ArgumentKind("text or a number", lambda value: isinstance(value, str) or is_number(value)),
    "str | list[Any]": ArgumentKind("text or a list", lambda value: isinstance(value, str | list)),
    "Mapping[str, Any] | list[Any]": ArgumentKind(
        "a mapping or a list", lambda value: isinstance(value, Mapping | list)
    ),
    "Any": ArgumentKind("a value", _is_anything),
    "Any | Absent": ArgumentKind("a value, or nothing", _is_anything, takes_absent=True),
}
_INJECTED = {"datetime": "time", "Entropy": "randomness"}


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """One parameter that the caller writes."""

    name: str
    kind: ArgumentKind
    is_required: bool
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A function that expressions can call.

    Args:
        name: In expressions.
        call: What it does; a `ValueError` from it is a message to the user.
        parameters: What the caller writes, in order.
        needs: ``time``, ``randomness``, or neither when it is empty. What needs something gets it first.
        about: Its documentation: a sentence or more, without indentation.
        cost: What a call costs, and each letter of its arguments; 256 are one step of `Limits`.
    """

    name: str
    call: Callable[..., Any]
    parameters: tuple[FunctionParameter, ...]
    needs: str
    about: str
    cost: tuple[int, int]

    @classmethod
    def from_callable(cls, call: Callable[..., Any]) -> Function:
        """The function of a Python function."""
        name = _UNDERSCORE.sub(lambda found: found[1].upper(), call.__name__.strip("_"))
        needs = ""
        parameters: list[FunctionParameter] = []
        for each in inspect.signature(call).parameters.values():
            if each.annotation in _INJECTED:
                needs = _INJECTED[each.annotation]
                continue
            repeated = each.kind is inspect.Parameter.VAR_POSITIONAL
            required = each.default is inspect.Parameter.empty and not repeated
            parameters.append(FunctionParameter(each.name, _KINDS[each.annotation], required, repeated))
        about = inspect.cleandoc(call.__doc__ or "")
        cost = next((cost for prefix, cost in _COSTS.items() if name.startswith(prefix)), (0, 1))
        return cls(_NAMES.get(name, name), call, tuple(parameters), needs, about, cost)

    def find_arity_problem(self, count: int) -> str:
        """What is wrong with so many arguments; empty when nothing is."""
        least = sum(parameter.is_required for parameter in self.parameters)
        is_open = any(parameter.is_repeated for parameter in self.parameters)
        most = len(self.parameters)
        if count >= least and (is_open or count <= most):
            return ""
        expected = f"at least {least}" if is_open else str(least) if least == most else f"{least} to {most}"
        return f"{self.signature} takes {expected} argument{'' if expected == '1' else 's'}, found {count}"

    def get_parameter(self, number: int) -> FunctionParameter:
        """Of the argument with that number; the last one is there for all further ones."""
        return self.parameters[min(number, len(self.parameters) - 1)]

    def find_argument_problem(self, number: int, value: Any) -> str:
        """What is wrong with the kind of an argument; empty when nothing is. It does not tell the value."""
        parameter = self.get_parameter(number)
        if parameter.kind.fits(value) and (parameter.kind.takes_absent or type(value) is not Absent):
            return ""
        return (
            f"{self.name}: expected {parameter.kind.expected} for {parameter.name}, found {describe_value_type(value)}"
        )

    @property
    def signature(self) -> str:
        """As documentation shows it, for example ``truncate(text, length, [ending])``."""
        shown = [
            f"{parameter.name}…"
            if parameter.is_repeated
            else parameter.name
            if parameter.is_required
            else f"[{parameter.name}]"
            for parameter in self.parameters
        ]
        return f"{self.name}({', '.join(shown)})"


# Names that underscores do not give.
_NAMES = {
    "toJson": "toJSON",
    "fromJson": "fromJSON",
    "isDns1123Label": "isDNS1123Label",
    "isDns1123Subdomain": "isDNS1123Subdomain",
    "serviceClusterIp": "serviceClusterIP",
    "serviceLoadBalancerIp": "serviceLoadBalancerIP",
}


# What takes more than others, by how the names begin: to compile a regular expression, to walk
# from one moment of a schedule to the next, to read a range of versions.
_COSTS = {"matches": (500 << 8, 256), "cronNext": (200 << 8, 1), "cron": (20 << 8, 1), "semver": (10 << 8, 1)}


@dataclass(frozen=True, slots=True)
class FunctionGroup:
    """Functions that belong together.

    Args:
        title: Of their part of the documentation.
        about: What they have in common.
        functions: In the order of the documentation.
    """

    title: str
    about: str
    functions: tuple[Function, ...]


def build_group(title: str, about: str, *calls: Callable[..., Any]) -> FunctionGroup:
    """A group of these Python functions."""
    return FunctionGroup(title, about, tuple(Function.from_callable(call) for call in calls))
