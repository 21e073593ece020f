"""What a reference to a bundle says, and what the operator says of bundles. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from konverge.kube.names import dns_subdomain_mistakes
from konverge.resolution.errors import ResolutionError
from konverge.resolution.parameters import check_names, invalid, text_of
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Parameters
from konverge.resolution.remote import CONNECTION_SETTINGS
from konverge.resolution.resolver import Parameter, ParameterRole, Setting
from konverge.resolution.resolvers.bundles.images import Image, parse_image, registry_name
from konverge.resolution.settings import FETCH_SETTINGS, as_list

__all__ = ["PARAMETERS", "SETTINGS", "checked", "image_of", "is_plain_http"]

PARAMETERS: dict[str, Parameter] = {
    "bundle": Parameter(
        "The image: `host/repository`, with `:tag` or `@sha256:…`", required=True, role=ParameterRole.VERSION
    ),
    "name": Parameter("The object's name; of a plain artefact the file's title", required=True),
    "kind": Parameter(
        "The object's kind, in any case; of a plain artefact it is not looked at", setting="default-kind"
    ),
    "secret": Parameter(
        "A Secret of the requester's namespace with credentials for registries", role=ParameterRole.CREDENTIAL
    ),
    "serviceAccount": Parameter(
        "A ServiceAccount of the requester's namespace, whose `imagePullSecrets` are used",
        setting="default-service-account",
        role=ParameterRole.CREDENTIAL,
    ),
}
"""By name, in the order of the documentation."""

SETTINGS: dict[str, Setting] = {
    **FETCH_SETTINGS,
    "default-kind": Setting("The kind of references without one", default="task"),
    "default-service-account": Setting(
        "The ServiceAccount of references without one; empty for none", default="default"
    ),
    "allowed-registries": Setting("The registries that may be asked; empty for all", "list"),
    "plain-http-registries": Setting("The registries that are spoken to without TLS", "list"),
    "token-realms": Setting(
        "The hosts, other than a registry's own, that may see passwords for its tokens: `registry=host`",
        "list",
        "registry-1.docker.io=auth.docker.io, registry.gitlab.com=gitlab.com",
    ),
    **CONNECTION_SETTINGS,
}

_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_MAX_NAME = 253


def checked(params: Parameters, settings: Mapping[str, str]) -> dict[str, str]:
    """Parameters with their defaults, the image in its one spelling.

    Args:
        params: As the reference has them.
        settings: The resolver's configuration.

    Raises:
        ResolutionError: ``InvalidParams``, naming the parameter; ``Denied``: the registry may not be asked.
    """
    check_names(params, PARAMETERS)
    found = {
        name: text_of(params, name) or settings.get(parameter.setting, "").strip()
        for name, parameter in PARAMETERS.items()
    }
    for name, parameter in PARAMETERS.items():
        if parameter.required and not found[name]:
            raise invalid(name, "expected one, found none")
    try:
        image = parse_image(found["bundle"])
    except ValueError as error:
        raise invalid("bundle", str(error)) from None
    if len(found["name"]) > _MAX_NAME or not found["name"].isprintable():
        raise invalid("name", f"expected at most {_MAX_NAME} characters in one line, found {found['name'][:80]!r}")
    if not _KIND.fullmatch(found["kind"]):
        raise invalid("kind", f"expected a kind such as Task, found {found['kind'][:80]!r}")
    for name in ("secret", "serviceAccount"):
        if found[name] and dns_subdomain_mistakes(found[name]):
            raise invalid(name, f"expected the name of an object, found {found[name][:80]!r}")
    allowed = _registries(settings, "allowed-registries")
    if allowed and image.registry not in allowed:
        told = (
            f"parameter 'bundle': registry {image.registry} is none that may be asked; there are: {', '.join(allowed)}"
        )
        raise ResolutionError(Reason.DENIED, told)
    found |= {"bundle": str(image), "kind": found["kind"].lower()}
    return {name: value for name, value in found.items() if value}


def image_of(params: Parameters) -> Image:
    """The image of checked parameters."""
    return parse_image(str(params["bundle"]))


def is_plain_http(image: Image, settings: Mapping[str, str]) -> bool:
    """Tell whether the image's registry is spoken to without TLS.

    Args:
        image: The image.
        settings: The resolver's configuration.

    Raises:
        ResolutionError: ``InvalidConfiguration``: the setting names something else than registries.
    """
    return image.registry in _registries(settings, "plain-http-registries")


def _registries(settings: Mapping[str, str], key: str) -> tuple[str, ...]:
    try:
        return tuple(registry_name(each) for each in as_list(settings.get(key, "")))
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"{key}: {error}") from None
