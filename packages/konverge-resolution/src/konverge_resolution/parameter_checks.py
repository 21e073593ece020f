"""What resolvers check the parameters of a reference with: the same words for the same mistake. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from konverge.suggestions import did_you_mean
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Parameters
from konverge_resolution.resolver import Parameter

__all__ = ["build_param_error", "check_names", "check_secret", "get_text", "name_params_in_errors"]

_MAX_TEXT = 80
_SECRET_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_SECRET_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")


def build_param_error(name: str, told: str) -> ResolutionError:
    """The failure of one parameter: ``InvalidParams``.

    Args:
        name: The parameter.
        told: What was expected, and what was found where that may be shown.
    """
    return ResolutionError(Reason.INVALID_PARAMETERS, f"parameter {name[:_MAX_TEXT]!r}: {told}")


def check_names(params: Parameters, known: Mapping[str, Parameter]) -> None:
    """Refuse a parameter that a resolver does not have.

    Raises:
        ResolutionError: ``InvalidParams``, naming the parameter, those that there are, and the one that may be meant.
    """
    if unknown := sorted(set(params) - set(known)):
        message = f"no such parameter; there are: {', '.join(known)}"
        raise build_param_error(unknown[0], f"{message}{did_you_mean(unknown[0], known)}")


def get_text(params: Parameters, name: str) -> str:
    """One parameter; empty for none.

    Raises:
        ResolutionError: ``InvalidParams``: it is a list or a mapping.
    """
    value = params.get(name, "")
    if not isinstance(value, str):
        raise build_param_error(name, f"expected text, found {type(value).__name__}")
    return value


def check_secret(params: Mapping[str, str], name: str, key: str = "") -> None:
    """Refuse what is no name of a Secret, and no key of one; those that are not given pass.

    Args:
        params: The parameters.
        name: The one that names the Secret.
        key: The one that names its key; empty where there is none to name.

    Raises:
        ResolutionError: ``InvalidParams``. It does not repeat what was given: that may be the password itself.
    """
    if name in params and not _SECRET_NAME.fullmatch(params[name]):
        raise build_param_error(name, "expected the name of a Secret")
    if key in params and not _SECRET_KEY.fullmatch(params[key]):
        raise build_param_error(key, "expected a key of the Secret")


@contextmanager
def name_params_in_errors(*names: str) -> Iterator[None]:
    """Say of a Secret that is read in the block, and is not there, which parameters name it.

    Whether it is the Secret that is missing, or the key in it, is not told.

    Args:
        names: The parameters.
    """
    try:
        yield
    except ResolutionError as error:
        if error.reason is not Reason.AUTHENTICATION_REQUIRED:
            raise
        message = " or ".join(f"parameter {name!r}" for name in names)
        raise error.with_message(f"{message}: {error.message}") from None
