"""Resolver ``hub``: its parameters, and the requests to one hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from konverge._internal.feature import VersionRange
from konverge.errors import KonvergeError
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import CONNECTION_SETTINGS, build_status_error, wrap_network_errors
from konverge_resolution._internal.network import HttpSession, InvalidRequestError
from konverge_resolution._internal.parameter_checks import build_param_error, check_names, get_text
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest, Parameter, ParameterRole, Setting
from konverge_resolution._internal.resolver_settings import FETCH_SETTINGS
from konverge_resolution._internal.resolvers.hub.hub_api import (
    ARTIFACT,
    TEKTON,
    TYPES,
    HubPackage,
    parse_content,
    parse_exact_version,
    parse_versions,
)
from konverge_resolution._internal.resolvers.hub.hub_order import list_hubs, normalize_hub_url, resolve_in_order
from konverge_resolution._internal.source_prefix import canonicalize_source
from konverge_resolution._internal.version_selection import select_version

__all__ = ["HubResolver"]

_KINDS = ("task", "pipeline", "stepaction")
_LONGEST = 253
_ENVELOPE_BYTES = 1 << 20
"""Maximum size of a response besides the definition: a readme, the other versions."""


class HubResolver:
    """Fetches a definition from Artifact Hub, Tekton Hub or a compatible hub.

    Attributes:
        name: ``hub``.
        parameters: Its parameters.
        settings: Its settings.
    """

    name = "hub"
    parameters: Mapping[str, Parameter] = {
        "type": Parameter("Type of the hub: artifact or tekton", setting="default-type"),
        "kind": Parameter("Kind of the definition: task, pipeline or stepaction", setting="default-kind"),
        "catalog": Parameter("Catalog of the definition; the default depends on type and kind"),
        "name": Parameter("Name of the definition", required=True),
        "version": Parameter(
            "Version, or range of versions such as >=0.7 <2", required=True, role=ParameterRole.VERSION
        ),
        "url": Parameter("Address of the hub, instead of those in the settings", role=ParameterRole.VERSION),
    }
    reads = ()
    settings: Mapping[str, Setting] = {
        "default-type": Setting("Type of the hub of references without one", default=ARTIFACT),
        "default-kind": Setting("Kind of references without one", default="task"),
        "default-artifact-hub-task-catalog": Setting(
            "Catalog of tasks on an Artifact Hub, of references without one", default="tekton-catalog-tasks"
        ),
        "default-artifact-hub-pipeline-catalog": Setting(
            "Catalog of pipelines on an Artifact Hub, of references without one",
            default="tekton-catalog-pipelines",
        ),
        "default-tekton-hub-catalog": Setting("Catalog on a Tekton Hub, of references without one", default="Tekton"),
        "artifact-hub-urls": Setting("Artifact Hubs in the order of their use", "list", "https://artifacthub.io"),
        "tekton-hub-urls": Setting("Tekton Hubs in the order of their use", "list"),
        **FETCH_SETTINGS,
        "fetch-timeout": Setting("Time limit of one resolution, all hubs together", "duration", "1m"),
        **CONNECTION_SETTINGS,
    }

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the parameters with their defaults, and an exact version as hubs of that type write it.

        Raises:
            ResolutionError: ``InvalidParams`` with the name of the parameter.
        """
        check_names(params, self.parameters)
        found = {
            "type": _get_choice(params, "type", settings.get("default-type", ""), TYPES),
            "kind": _get_choice(params, "kind", settings.get("default-kind", ""), _KINDS),
        }
        found["catalog"] = _get_segment(params, "catalog", _find_default_catalog(found, settings))
        found["name"] = _get_segment(params, "name", "")
        version = _get_segment(params, "version", "")
        found["version"] = parse_exact_version(version, found["type"]) or _parse_range(version).text
        if "url" in params:
            found["url"] = _parse_url(_get_text_param(params, "url", ""))
        else:
            list_hubs(found, settings)
        return found

    def spell_parameter(self, name: str, value: str) -> Sequence[str]:
        """Return the spellings of a value, as policies compare it. A range can be any version."""
        match name:
            case "type" | "kind":
                return (value.lower(),)
            case "version":
                exact = parse_exact_version(value, ARTIFACT)
                return (value, "*") if exact is None else (exact,)
            case "url":
                return (canonicalize_source(value),)
        return (value,)

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Return the URL of the definition without its version, on the first hub."""
        return _parse_package(params).build_list_url(list_hubs(params, settings)[0])

    def is_pinned(self, params: Parameters) -> bool:
        """Return False: a version of a hub has no digest and can be published again."""
        return False

    def find_pin_mismatch(
        self, asked: Parameters, pinned: Parameters, settings: Mapping[str, str]
    ) -> tuple[str, str] | None:
        """Return the mismatch if the version is not within the requested range, or the hub is not configured."""
        wanted, found = str(asked["version"]), str(pinned["version"])
        exact = parse_exact_version(wanted, str(asked["type"]))
        if found != exact if exact is not None else select_version([found], _parse_range(wanted)) is None:
            return "version", f"a version of {wanted}"
        hubs = list_hubs(asked, settings)
        return None if str(pinned["url"]) in hubs else ("url", f"one of {', '.join(hubs)}")

    def build_provenance(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Provenance
    ) -> Provenance:
        """Return the URL of the version on its hub, and the digest of the content."""
        url = _parse_package(params).build_version_url(str(params["url"]), str(params["version"]))
        return Provenance(url, {digest.algorithm: digest.hex})

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Return None: a range would be cached under its current version, as if that never changed."""
        return None

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Fetch the definition: with one request for a version, with two to the same hub for a range.

        The pinned parameters are that version on that hub. This is the most exact name, but not permanent: a lock file
        also has the digest.

        Raises:
            ResolutionError: There is no such definition, or no hub responds.
        """
        return await resolve_in_order(fetch, lambda session, hub: _resolve_on_hub(fetch, session, hub))


async def _select_best_version(fetch: FetchRequest, session: HttpSession, hub: str) -> Parameters:
    """Return the parameters with the highest version of the hub in the range."""
    params, package = fetch.params, _parse_package(fetch.params)
    body, _ = await _get_body(fetch, session, hub, package.build_list_url(hub), f"{package.kind} {package.name!r}")
    try:
        versions = parse_versions(body, package.type)
    except ValueError as error:
        raise _build_hub_error(hub, error) from None
    best = select_version(versions, _parse_range(str(params["version"])))
    if best is None:
        message = f"hub {hub} has no version {params['version']} of {package.kind} {package.name!r}"
        raise ResolutionError(
            Reason.NOT_FOUND, f"{message}; it has {len(versions)} other versions without pre-releases"
        )
    return {**params, "version": best}


async def _resolve_on_hub(fetch: FetchRequest, session: HttpSession, hub: str) -> ResolvedContent:
    params = fetch.params
    if parse_exact_version(str(params["version"]), str(params["type"])) is None:
        params = await _select_best_version(fetch, session, hub)
    package, version = _parse_package(params), str(params["version"])
    url = package.build_version_url(hub, version)
    body, redirected_to = await _get_body(
        fetch, session, hub, url, f"version {version} of {package.kind} {package.name!r}"
    )
    try:
        data = parse_content(body, package.type)
    except ValueError as error:
        raise _build_hub_error(hub, error) from None
    if len(data) > fetch.max_bytes:
        message = (
            f"{package.kind} {package.name!r} of hub {hub}: expected at most {fetch.max_bytes} bytes, found {len(data)}"
        )
        raise ResolutionError(Reason.TOO_LARGE, message)
    return ResolvedContent(
        data,
        Provenance(url, {"sha256": Digest.of(data).hex}),
        {"name": package.name, "catalog": package.catalog, "version": version, "hub": hub},
        pinned={**params, "url": hub},
        found_at=redirected_to,
    )


async def _get_body(fetch: FetchRequest, session: HttpSession, hub: str, url: str, what: str) -> tuple[bytes, str]:
    """Return the body of a hub's response, and the target of its redirect."""
    source = f"hub {hub}"
    max_bytes = 2 * fetch.max_bytes + _ENVELOPE_BYTES
    with wrap_network_errors(source):
        async with session.stream(url, headers={"Accept": "application/json"}, max_bytes=max_bytes) as response:
            if response.status in (404, 410):
                raise ResolutionError(Reason.NOT_FOUND, f"{source} has no {what}")
            if response.status != 200:
                now = fetch.services.clock.now()
                raise build_status_error(response, source, has_credential=False, now=now)
            return await response.read(), response.redirected_to


def _parse_package(params: Parameters) -> HubPackage:
    return HubPackage(*(str(params[name]) for name in ("type", "kind", "catalog", "name")))


def _find_default_catalog(found: Mapping[str, str], settings: Mapping[str, str]) -> str:
    if found["type"] == TEKTON:
        return settings.get("default-tekton-hub-catalog", "")
    return settings.get(f"default-artifact-hub-{found['kind']}-catalog", "")


def _get_text_param(params: Parameters, name: str, default: str) -> str:
    value = (get_text(params, name) or default).strip()
    if not value:
        raise build_param_error(name, "expected a value, found none, and the operator has no default")
    return value


def _get_choice(params: Parameters, name: str, default: str, known: Sequence[str]) -> str:
    value = _get_text_param(params, name, default).lower()
    if value not in known:
        raise build_param_error(name, f"expected {', '.join(known[:-1])} or {known[-1]}, found {value[:80]!r}")
    return value


def _get_segment(params: Parameters, name: str, default: str) -> str:
    """Return text for one segment of a path. It will be encoded, but ``.`` and ``..`` remain steps of a path."""
    value = _get_text_param(params, name, default)
    if len(value) > _LONGEST or value in (".", "..") or not value.isprintable():
        raise build_param_error(name, f"expected one line of at most {_LONGEST} characters, found {value[:80]!r}")
    return value


def _parse_range(text: str) -> VersionRange:
    try:
        return VersionRange(text)
    except KonvergeError as error:
        raise build_param_error("version", f"expected a version or a range of versions; {error}") from None


def _parse_url(text: str) -> str:
    try:
        return normalize_hub_url(text)
    except InvalidRequestError as error:
        raise ResolutionError(Reason.INVALID_PARAMETERS, f"parameter 'url' {error.problem}") from None


def _build_hub_error(hub: str, error: ValueError) -> ResolutionError:
    return ResolutionError(Reason.UNREACHABLE, f"hub {hub}: {error}")
