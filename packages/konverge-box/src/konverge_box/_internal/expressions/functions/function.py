"""A function of expressions: a Python function whose signature declares its arguments.

The annotation of a parameter decides which arguments are valid, before the function is called. The evaluation passes
two types of parameters itself: `datetime` is the time of the reconcile, `Entropy` the source of random values.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge_box._internal.expressions.values import Absent, describe_value_type, is_number

__all__ = ["Function", "FunctionGroup", "FunctionParameter", "build_group"]

_UNDERSCORE = re.compile(r"_([a-z0-9])")


@dataclass(frozen=True, slots=True)
class ArgumentKind:
    """The values that an argument may have.

    Args:
        expected: The type in the words of messages.
        fits: Tells whether a value is of this type.
        takes_absent: Whether an absent field is a valid argument.
    """

    expected: str
    fits: Callable[[Any], bool]
    takes_absent: bool = False


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_anything(value: object) -> bool:
    return True


_KINDS = {
    "str": ArgumentKind("a string", lambda value: isinstance(value, str)),
    "int": ArgumentKind("an integer", _is_integer),
    "float": ArgumentKind("a number", is_number),
    "bool": ArgumentKind("a boolean", lambda value: isinstance(value, bool)),
    "list[Any]": ArgumentKind("a list", lambda value: isinstance(value, list)),
    "Mapping[str, Any]": ArgumentKind("a mapping", lambda value: isinstance(value, Mapping)),
    "str | float": ArgumentKind("a string or a number", lambda value: isinstance(value, str) or is_number(value)),
    "str | list[Any]": ArgumentKind("a string or a list", lambda value: isinstance(value, str | list)),
    "Mapping[str, Any] | list[Any]": ArgumentKind(
        "a mapping or a list", lambda value: isinstance(value, Mapping | list)
    ),
    "Any": ArgumentKind("a value", _is_anything),
    "Any | Absent": ArgumentKind("a value, or an absent one", _is_anything, takes_absent=True),
}
_INJECTED = {"datetime": "time", "Entropy": "randomness"}


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """One parameter that the caller passes."""

    name: str
    kind: ArgumentKind
    is_required: bool
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A function that expressions can call.

    Args:
        name: The name in expressions.
        call: The Python function; a `ValueError` from it is a message for the user.
        parameters: The parameters that the caller passes, in order.
        needs: ``time``, ``randomness``, or empty for neither. That input is its first argument.
        about: Its documentation: a sentence or more, without indentation.
        next_change: For a function that needs the time: returns the time at which its result for these arguments
            changes, None for never.
        cost: The cost of a call, and of each character of its arguments; 256 are one step of `EvaluationLimits`.
    """

    name: str
    call: Callable[..., Any]
    parameters: tuple[FunctionParameter, ...]
    needs: str
    about: str
    cost: tuple[int, int]
    next_change: Callable[..., datetime | None] | None = None

    @classmethod
    def from_callable(
        cls, call: Callable[..., Any], next_change: Callable[..., datetime | None] | None = None
    ) -> Function:
        """Build the function from a Python function."""
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
        return cls(_NAMES.get(name, name), call, tuple(parameters), needs, about, cost, next_change)

    def find_arity_problem(self, count: int) -> str:
        """Describe the error of this number of arguments; empty if it is valid."""
        least = sum(parameter.is_required for parameter in self.parameters)
        is_open = any(parameter.is_repeated for parameter in self.parameters)
        most = len(self.parameters)
        if count >= least and (is_open or count <= most):
            return ""
        expected = f"at least {least}" if is_open else str(least) if least == most else f"{least} to {most}"
        return f"{self.signature}: expected {expected} argument{'' if expected == '1' else 's'}, found {count}"

    def get_parameter(self, number: int) -> FunctionParameter:
        """Return the parameter of the argument at an index; the last one takes all further arguments."""
        return self.parameters[min(number, len(self.parameters) - 1)]

    def find_argument_problem(self, number: int, value: Any) -> str:
        """Describe the type error of an argument, without its value; empty if it is valid."""
        parameter = self.get_parameter(number)
        if parameter.kind.fits(value) and (parameter.kind.takes_absent or type(value) is not Absent):
            return ""
        return (
            f"{self.name}: expected {parameter.kind.expected} for {parameter.name}, found {describe_value_type(value)}"
        )

    @property
    def signature(self) -> str:
        """The signature for documentation, for example ``truncate(text, length, [ending])``."""
        parameters = [
            f"{parameter.name}…"
            if parameter.is_repeated
            else parameter.name
            if parameter.is_required
            else f"[{parameter.name}]"
            for parameter in self.parameters
        ]
        return f"{self.name}({', '.join(parameters)})"


# Names that do not follow from the underscores.
_NAMES = {
    "toJson": "toJSON",
    "fromJson": "fromJSON",
    "isDns1123Label": "isDNS1123Label",
    "isDns1123Subdomain": "isDNS1123Subdomain",
    "serviceClusterIp": "serviceClusterIP",
    "serviceLoadBalancerIp": "serviceLoadBalancerIP",
}


# Costs of expensive functions, by prefix of the name: they compile a regular expression, iterate over the
# times of a schedule, or parse a version range.
_COSTS = {"matches": (500 << 8, 256), "cronNext": (200 << 8, 1), "cron": (20 << 8, 1), "semver": (10 << 8, 1)}


@dataclass(frozen=True, slots=True)
class FunctionGroup:
    """A group of related functions.

    Args:
        title: The heading in the documentation.
        about: The common properties of its functions.
        functions: The functions in the order of the documentation.
    """

    title: str
    about: str
    functions: tuple[Function, ...]


def build_group(
    title: str,
    about: str,
    *calls: Callable[..., Any],
    changes: Mapping[Callable[..., Any], Callable[..., datetime | None]] | None = None,
) -> FunctionGroup:
    """Build a group of these Python functions.

    Args:
        title: The heading.
        about: The common properties.
        calls: The functions.
        changes: For functions that need the time: when the result for the same arguments changes.
    """
    return FunctionGroup(title, about, tuple(Function.from_callable(call, (changes or {}).get(call)) for call in calls))
