"""Resolver ``bundles``: a definition that is a layer of an image in a registry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from konverge._internal.cancellation import await_shielded
from konverge_resolution._internal.definition_listing import ListedDefinition
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import build_http_client
from konverge_resolution._internal.parameter_checks import name_params_in_errors
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters
from konverge_resolution._internal.relative_references import join_path
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest, Parameter, Setting
from konverge_resolution._internal.resolver_settings import as_list
from konverge_resolution._internal.resolvers.bundles.archives import MAX_ARCHIVE_BYTES, read_archive_file
from konverge_resolution._internal.resolvers.bundles.attached_signatures import fetch_signatures
from konverge_resolution._internal.resolvers.bundles.failures import build_unsupported_error
from konverge_resolution._internal.resolvers.bundles.image_listing import list_image
from konverge_resolution._internal.resolvers.bundles.image_reference import ImageReference, name_source
from konverge_resolution._internal.resolvers.bundles.keychains import RegistryLogin, find_login
from konverge_resolution._internal.resolvers.bundles.layer_selection import (
    API_VERSION,
    KIND,
    NAME,
    LayerChoice,
    build_missing_error,
    is_bundle,
    select_layer,
)
from konverge_resolution._internal.resolvers.bundles.layers import PACKING_BYTES, unpack
from konverge_resolution._internal.resolvers.bundles.manifests import ImageIndex, Manifest, select_manifest
from konverge_resolution._internal.resolvers.bundles.parameters import (
    PARAMETERS,
    SETTINGS,
    is_plain_http,
    parse_image_param,
    spell_parameter,
    validate_listing_params,
    validate_params,
)
from konverge_resolution._internal.resolvers.bundles.registry_auth import RegistryAccess
from konverge_resolution._internal.resolvers.bundles.registry_client import (
    PulledManifest,
    RegistryClient,
    open_registry,
)
from konverge_resolution._internal.user_logins import name_user_login_in_errors

__all__ = ["INDEX_DIGEST", "BundlesResolver"]

INDEX_DIGEST = "resolution.konverge.dev/index-digest"
"""Annotation with the digest of the index that the image came from."""

_MAX_PULL_SECRETS = 20


class BundlesResolver:
    """Resolver for one layer of an image.

    Attributes:
        name: ``bundles``.
        parameters: The parameters by name.
        settings: The settings by name.
        reads: Secrets, and ServiceAccounts with pull Secrets.
    """

    name = "bundles"
    parameters: Mapping[str, Parameter] = PARAMETERS
    settings: Mapping[str, Setting] = SETTINGS
    reads = ("secrets", "serviceaccounts")

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the normalized parameters with their defaults.

        Raises:
            ResolutionError: ``InvalidParams`` with the parameter; ``Denied``: the registry is not permitted.
        """
        return validate_params(params, settings)

    def spell_parameter(self, name: str, value: str) -> Sequence[str]:
        """Return the spellings of a value, as policies compare it."""
        return spell_parameter(name, value)

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Return the repository, for example ``oci://registry.example.com/team/boxes``."""
        return parse_image_param(params).uri

    def is_pinned(self, params: Parameters) -> bool:
        """Tell whether the reference has a digest."""
        return parse_image_param(params).digest is not None

    def build_provenance(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Provenance
    ) -> Provenance:
        """Return the repository and the layer; the manifest that was selected in an index comes from the record."""
        image = parse_image_param(params)
        found = recorded.digest
        if image.digest is not None and not _is_one_digest(found):
            found = {image.digest.algorithm: image.digest.hex}
        return Provenance(image.uri, found, str(params["name"]))

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        """Return the parameters of another layer of the same image, given as ``name`` or ``../kind/name``.

        Raises:
            ResolutionError: ``InvalidParams``: the path has another form.
        """
        # The title of a file can contain slashes; the kind is the root of the path.
        kind, _, name = join_path(f"{params['kind']}/{params['name']}", path).partition("/")
        if not name:
            message = f"path {path[:120]!r}: expected a name, or ../kind/name"
            raise ResolutionError(Reason.INVALID_PARAMETERS, message)
        return {**params, "kind": kind, "name": name}

    def validate_listing(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the normalized parameters of an image, without a definition in it.

        Raises:
            ResolutionError: As `validate`; ``InvalidParams``: a parameter selects a definition.
        """
        return validate_listing_params(params, settings)

    async def list_definitions(self, fetch: FetchRequest) -> Sequence[ListedDefinition]:
        """Return the definitions of an image in the order of its layers; the paths of an archive are sorted.

        Raises:
            ResolutionError: The image does not exist or cannot be read.
        """
        image = parse_image_param(fetch.params)
        async with open_registry(_build_access(fetch, image), image) as registry:
            named = await registry.get_manifest(image.digest if image.digest is not None else image.tag)
            _, manifest = await _select_from_index(registry, named, str(image))
            return await list_image(registry, manifest, f"image {image}")

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Return the parameters with the current digest of the tag, from one HEAD request.

        Return None if the response has no digest; then the manifest determines it.

        Raises:
            ResolutionError: The image does not exist, or the registry cannot be read.
        """
        image = parse_image_param(fetch.params)
        if image.digest is not None:
            return fetch.params
        with name_user_login_in_errors(fetch, image.uri):
            async with open_registry(_build_access(fetch, image), image) as registry:
                digest = await registry.resolve_tag(image.tag)
        return None if digest is None else {**fetch.params, "bundle": str(image.with_digest(digest))}

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Fetch the manifest and the layer of the definition.

        Raises:
            ResolutionError: One of them does not exist or cannot be read.
        """
        image = parse_image_param(fetch.params)
        with name_user_login_in_errors(fetch, image.uri):
            return await self._pull(fetch, image)

    async def _pull(self, fetch: FetchRequest, image: ImageReference) -> ResolvedContent:
        async with open_registry(_build_access(fetch, image), image) as registry:
            named = await registry.get_manifest(image.digest if image.digest is not None else image.tag)
            pulled, manifest = await _select_from_index(registry, named, str(image))
            wanted = {name: str(fetch.params[name]) for name in ("name", "kind")}
            choice = select_layer(manifest, **wanted, what=f"image {image}")
            data = await _read_definition(registry, choice, wanted["name"], fetch.max_bytes, f"image {image}")
            digests = [pulled.digest, named.digest]
            attached = await fetch_signatures(registry, digests) if fetch.wants_signatures else ()
        # The manifest fixes the content; the location of a blob with its digest adds nothing.
        found_at = pulled.found_at or named.found_at
        annotations = {}
        if is_bundle(manifest):
            annotations = {name: choice.layer.get_annotation(name) for name in (NAME, KIND, API_VERSION)}
        if named is not pulled:
            annotations[INDEX_DIGEST] = str(named.digest)
        return ResolvedContent(
            data=data,
            source=Provenance(image.uri, {pulled.digest.algorithm: pulled.digest.hex}, wanted["name"]),
            annotations=annotations,
            pinned={**fetch.params, "bundle": str(image.with_digest(named.digest))},
            attached=attached,
            found_at="" if found_at == image.uri else found_at,
        )


def _is_one_digest(digests: Mapping[str, str]) -> bool:
    try:
        return len([Digest.parse(f"{algorithm}:{digits}") for algorithm, digits in digests.items()]) == 1
    except ValueError:
        return False


async def _select_from_index(
    registry: RegistryClient, named: PulledManifest, what: str
) -> tuple[PulledManifest, Manifest]:
    """Return the manifest of an image, directly or through its index."""
    pulled = named
    if isinstance(named.document, ImageIndex):
        entry = select_manifest(named.document, what=f"image {what}")
        pulled = await registry.get_manifest(entry.parsed_digest, size=entry.size)
    if isinstance(pulled.document, ImageIndex):
        raise build_unsupported_error(f"image {what}", "an index of manifests", "an index of indexes")
    return pulled, pulled.document


async def _read_definition(
    registry: RegistryClient, choice: LayerChoice, name: str, max_bytes: int, image: str
) -> bytes:
    layer, what = choice.layer, f"{name!r} of {image}"
    if not choice.is_archive:
        packed = await registry.get_blob(layer, max_bytes=max_bytes + PACKING_BYTES, what=what)
        return unpack(packed, layer.media_type, max_bytes=max_bytes, what=what)
    archive = await registry.get_blob(layer, max_bytes=MAX_ARCHIVE_BYTES, what=f"the archive of {image}")
    # Unpacking takes up to a fraction of a second.
    reading = asyncio.to_thread(read_archive_file, archive, name, max_bytes=max_bytes, what=image)
    content, files = await await_shielded(reading)
    if content is None:
        raise build_missing_error(image, name, sorted(files, key=_rank_path))
    return content


def _rank_path(path: str) -> tuple[bool, str]:
    """Sort definitions before other files."""
    return not path.endswith((".yaml", ".yml", ".json")), path


def _build_access(fetch: FetchRequest, image: ImageReference) -> RegistryAccess:
    return RegistryAccess(
        http=build_http_client(fetch, name_address=name_source),
        clock=fetch.services.clock,
        login=lambda: _read_login(fetch, image),
        realms=as_list(fetch.settings.get("token-realms", "")),
        is_plain_http=is_plain_http(image, fetch.settings),
    )


async def _read_login(fetch: FetchRequest, image: ImageReference) -> RegistryLogin | None:
    """Return the user and password for an image from a Secret, otherwise those that the user of a command has.

    It runs only when a registry requires them: most definitions are public.
    """
    login, users = await _read_secret_login(fetch, image), fetch.services.user_credentials
    if login is not None or users is None:
        return login
    fetch.services.progress.enter("looking up a credential for", image.registry)
    found = await users.find_registry_login(image.uri)
    return None if found is None else RegistryLogin(found.user, found.password)


async def _read_secret_login(fetch: FetchRequest, image: ImageReference) -> RegistryLogin | None:
    """Return the user and password from the named Secret, or from the ServiceAccount's pull Secrets."""
    secrets = fetch.services.secrets
    if "secret" in fetch.params:
        with name_params_in_errors("secret"):
            secret = await secrets.read_all(str(fetch.params["secret"]))
        login = find_login(image, secret)
        if login is not None:
            return login
    if "serviceAccount" not in fetch.params:
        return None
    account = str(fetch.params["serviceAccount"])
    try:
        with name_params_in_errors("serviceAccount"):
            names = await secrets.list_pull_secrets(account)
    except ResolutionError as error:
        # The default ServiceAccount, which no reference names, may be absent.
        if error.traits.is_transient or account != fetch.settings.get("default-service-account", ""):
            raise
        return None
    for name in names[:_MAX_PULL_SECRETS]:
        try:
            login = find_login(image, await secrets.read_all(name))
        except ResolutionError as error:
            if error.traits.is_transient:
                raise
            continue  # Kubernetes ignores missing pull Secrets too
        if login is not None:
            return login
    return None
