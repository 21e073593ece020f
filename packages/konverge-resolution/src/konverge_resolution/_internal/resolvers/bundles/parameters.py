"""Parameters and settings of the bundles resolver. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from konverge._internal.kube.name_validation import validate_dns_subdomain
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import CONNECTION_SETTINGS
from konverge_resolution._internal.parameter_checks import build_param_error, check_names, get_text
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolver import Parameter, ParameterRole, Setting
from konverge_resolution._internal.resolver_settings import FETCH_SETTINGS, as_list
from konverge_resolution._internal.resolvers.bundles.image_reference import (
    ImageReference,
    normalize_registry,
    parse_image,
)

__all__ = [
    "PARAMETERS",
    "SETTINGS",
    "is_plain_http",
    "parse_image_param",
    "spell_parameter",
    "validate_listing_params",
    "validate_params",
]

PARAMETERS: dict[str, Parameter] = {
    "bundle": Parameter(
        "The image: `host/repository` with `:tag` or `@sha256:…`", required=True, role=ParameterRole.VERSION
    ),
    "name": Parameter(
        "The name of the object; for a plain artifact, the title of the file; for an archive, its path", required=True
    ),
    "kind": Parameter("The kind of the object in upper or lower case; ignored for files", setting="default-kind"),
    "secret": Parameter(
        "A Secret in the requester's namespace with credentials for registries", role=ParameterRole.CREDENTIAL
    ),
    "serviceAccount": Parameter(
        "A ServiceAccount in the requester's namespace; the resolver uses its `imagePullSecrets`",
        setting="default-service-account",
        role=ParameterRole.CREDENTIAL,
    ),
}
"""Parameters by name, in the order of the documentation."""

SETTINGS: dict[str, Setting] = {
    **FETCH_SETTINGS,
    "default-kind": Setting("The kind for references without one", default="task"),
    "default-service-account": Setting(
        "The ServiceAccount for references without one; empty for none", default="default"
    ),
    "allowed-registries": Setting("The permitted registries; empty for all", "list"),
    "plain-http-registries": Setting("The registries that are reached without TLS", "list"),
    "token-realms": Setting(
        "Token servers beside a registry's own host that may receive its passwords: `registry=host`",
        "list",
        "registry-1.docker.io=auth.docker.io, registry.gitlab.com=gitlab.com",
    ),
    **CONNECTION_SETTINGS,
}

_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_MAX_NAME = 253
_SELECTORS = ("name", "kind")
_ANY_NAME = "any"


def validate_params(params: Parameters, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the normalized parameters with their defaults.

    Args:
        params: The parameters of the reference.
        settings: The settings of the resolver.

    Raises:
        ResolutionError: ``InvalidParams`` with the parameter; ``Denied``: the registry is not permitted.
    """
    check_names(params, PARAMETERS)
    found = {
        name: get_text(params, name) or settings.get(parameter.setting, "").strip()
        for name, parameter in PARAMETERS.items()
    }
    for name, parameter in PARAMETERS.items():
        if parameter.required and not found[name]:
            raise build_param_error(name, "expected one, found none")
    try:
        image = parse_image(found["bundle"])
    except ValueError as error:
        raise build_param_error("bundle", str(error)) from None
    if len(found["name"]) > _MAX_NAME or not found["name"].isprintable():
        raise build_param_error(
            "name", f"expected at most {_MAX_NAME} characters in one line, found {found['name'][:80]!r}"
        )
    if not _KIND.fullmatch(found["kind"]):
        raise build_param_error("kind", f"expected a kind such as Task, found {found['kind'][:80]!r}")
    for name in ("secret", "serviceAccount"):
        if found[name] and validate_dns_subdomain(found[name]):
            raise build_param_error(name, f"expected the name of an object, found {found[name][:80]!r}")
    allowed = _parse_registries(settings, "allowed-registries")
    if allowed and image.registry not in allowed:
        message = (
            f"parameter 'bundle': registry {image.registry} is not permitted; expected one of setting "
            f"'allowed-registries': {', '.join(allowed)}"
        )
        raise ResolutionError(Reason.DENIED, message)
    found |= {"bundle": str(image), "kind": found["kind"].lower()}
    return {name: value for name, value in found.items() if value}


def validate_listing_params(params: Parameters, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the normalized parameters of an image, without a definition in it.

    Raises:
        ResolutionError: As `validate_params`; ``InvalidParams``: a parameter selects a definition.
    """
    for name in _SELECTORS:
        if name in params:
            raise build_param_error(name, "has no effect on a list of all definitions; remove it")
    validated = validate_params({**params, "name": _ANY_NAME}, settings)
    return {name: value for name, value in validated.items() if name not in _SELECTORS}


def spell_parameter(name: str, value: str) -> Sequence[str]:
    """Return the spellings of a value of a parameter (`SpellingResolver.spell_parameter`)."""
    if name == "kind":
        return (value.lower(),)
    if name != "bundle":
        return (value,)
    try:
        image = parse_image(value)
    except ValueError:
        return (value,)
    # A tag can have any digest, and a digest any tag.
    return str(image), f"{image.name}{':' if image.digest is not None else '@'}*"


def parse_image_param(params: Parameters) -> ImageReference:
    """Return the image of validated parameters."""
    return parse_image(str(params["bundle"]))


def is_plain_http(image: ImageReference, settings: Mapping[str, str]) -> bool:
    """Tell whether connections to the image's registry use no TLS.

    Args:
        image: The image.
        settings: The settings of the resolver.

    Raises:
        ResolutionError: ``InvalidConfiguration``: the setting contains an entry that is not a registry.
    """
    return image.registry in _parse_registries(settings, "plain-http-registries")


def _parse_registries(settings: Mapping[str, str], key: str) -> tuple[str, ...]:
    try:
        return tuple(normalize_registry(name) for name in as_list(settings.get(key, "")))
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting {key!r}: {error}") from None
