"""Checks of parameters for resolvers, with the same message for the same error. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from konverge._internal.suggestions import did_you_mean
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolver import Parameter

__all__ = ["build_param_error", "check_names", "check_secret", "get_text", "name_params_in_errors"]

_MAX_TEXT = 80
_SECRET_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_SECRET_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")


def build_param_error(name: str, message: str) -> ResolutionError:
    """Return the error for one parameter: ``InvalidParams``.

    Args:
        name: The parameter.
        message: The expected value, and the actual one where it may be printed.
    """
    return ResolutionError(Reason.INVALID_PARAMETERS, f"parameter {name[:_MAX_TEXT]!r}: {message}")


def check_names(params: Parameters, known: Mapping[str, Parameter]) -> None:
    """Refuse a parameter that the resolver does not have.

    Raises:
        ResolutionError: ``InvalidParams`` with the parameter, the valid parameters and the closest match.
    """
    if unknown := sorted(set(params) - set(known)):
        message = f"no such parameter; expected one of {', '.join(known)}"
        raise build_param_error(unknown[0], f"{message}{did_you_mean(unknown[0], known)}")


def get_text(params: Parameters, name: str) -> str:
    """Return the text of one parameter; empty without one.

    Raises:
        ResolutionError: ``InvalidParams``: the value is a list or a mapping.
    """
    value = params.get(name, "")
    if not isinstance(value, str):
        raise build_param_error(name, f"expected text, found {type(value).__name__}")
    return value


def check_secret(params: Mapping[str, str], name: str, key: str = "") -> None:
    """Refuse an invalid name or key of a Secret; missing parameters are accepted.

    Args:
        params: The parameters.
        name: The parameter with the name of the Secret.
        key: The parameter with the key; empty without one.

    Raises:
        ResolutionError: ``InvalidParams``. The message does not repeat the value, since it may be the password itself.
    """
    if name in params and not _SECRET_NAME.fullmatch(params[name]):
        raise build_param_error(name, "expected the name of a Secret")
    if key in params and not _SECRET_KEY.fullmatch(params[key]):
        raise build_param_error(key, "expected a key of the Secret")


@contextmanager
def name_params_in_errors(*names: str) -> Iterator[None]:
    """Add the names of parameters to errors about a missing Secret in the block.

    The message does not tell whether the Secret or its key is missing.

    Args:
        names: The parameters that name the Secret and its key.
    """
    try:
        yield
    except ResolutionError as error:
        if error.reason is not Reason.AUTHENTICATION_REQUIRED:
            raise
        message = " or ".join(f"parameter {name!r}" for name in names)
        raise error.with_message(f"{message}: {error.message}") from None
