"""``bundles``: a definition that is a layer of an image in a registry."""

from __future__ import annotations

from collections.abc import Mapping

from konverge.resolution.errors import ResolutionError
from konverge.resolution.parameters import secret_of
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Digest, Parameters
from konverge.resolution.relative import beside
from konverge.resolution.remote import http_of
from konverge.resolution.resolver import Fetch, Parameter, Setting
from konverge.resolution.resolvers.bundles.attached import attached_signatures
from konverge.resolution.resolvers.bundles.authorizing import Access
from konverge.resolution.resolvers.bundles.failures import unsupported
from konverge.resolution.resolvers.bundles.images import Image, name_place
from konverge.resolution.resolvers.bundles.keychains import Login, login_for
from konverge.resolution.resolvers.bundles.layers import PACKING_BYTES, unpack
from konverge.resolution.resolvers.bundles.layouts import API_VERSION, KIND, NAME, is_bundle, layer_of
from konverge.resolution.resolvers.bundles.manifests import Index, Manifest, chosen
from konverge.resolution.resolvers.bundles.parameters import PARAMETERS, SETTINGS, checked, image_of, is_plain_http
from konverge.resolution.resolvers.bundles.pulling import Pulled, Registry, connected
from konverge.resolution.result import Resolved, Source
from konverge.resolution.settings import as_list

__all__ = ["INDEX_DIGEST", "BundlesResolver"]

INDEX_DIGEST = "resolution.konverge.dev/index-digest"
"""The annotation of what came from an index: the index's digest."""

_MAX_PULL_SECRETS = 20


class BundlesResolver:
    """Gets one layer of an image.

    Attributes:
        name: ``bundles``.
        parameters: Its parameters.
        settings: Its settings.
        reads: Secrets, and the ServiceAccounts that name some.
    """

    name = "bundles"
    parameters: Mapping[str, Parameter] = PARAMETERS
    settings: Mapping[str, Setting] = SETTINGS
    reads = ("secrets", "serviceaccounts")

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """The parameters with their defaults, the image in its one spelling.

        Raises:
            ResolutionError: ``InvalidParams``, naming the parameter; ``Denied``: the registry may not be asked.
        """
        return checked(params, settings)

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """The repository, for example ``oci://registry.example.com/team/boxes``."""
        return image_of(params).uri

    def is_pinned(self, params: Parameters) -> bool:
        """Tell whether a digest names the image."""
        return image_of(params).digest is not None

    def recorded_source(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Source
    ) -> Source:
        """The repository and the layer; which manifest an index has chosen only the registry can tell."""
        image = image_of(params)
        found = recorded.digest
        if image.digest is not None and not _is_one_digest(found):
            found = {image.digest.algorithm: image.digest.hex}
        return Source(image.uri, found, str(params["name"]))

    def relative(self, params: Parameters, path: str) -> Parameters:
        """The parameters of another layer of the same image: its name, or ``../``, its kind, ``/`` and its name.

        Raises:
            ResolutionError: ``InvalidParams``: it is neither.
        """
        # A file's title can have slashes; the kind is the root of what an image has.
        kind, _, name = beside(f"{params['kind']}/{params['name']}", path).partition("/")
        if not name:
            told = f"path {path[:120]!r}: expected a name, or ../kind/name"
            raise ResolutionError(Reason.INVALID_PARAMETERS, told)
        return {**params, "kind": kind, "name": name}

    async def pin(self, fetch: Fetch) -> Parameters | None:
        """The parameters with the digest that the tag is now: one request without a body.

        A registry that does not say it there is believed nothing: None, and the manifest tells.

        Raises:
            ResolutionError: There is no such image, or the registry cannot be asked.
        """
        image = image_of(fetch.params)
        if image.digest is not None:
            return fetch.params
        async with connected(_access(fetch, image), image) as registry:
            digest = await registry.digest_of(image.tag)
        return None if digest is None else {**fetch.params, "bundle": str(image.at(digest))}

    async def resolve(self, fetch: Fetch) -> Resolved:
        """Get the manifest and the one layer.

        Raises:
            ResolutionError: There is none, or it cannot be had.
        """
        image = image_of(fetch.params)
        async with connected(_access(fetch, image), image) as registry:
            named = await registry.manifest(image.digest if image.digest is not None else image.tag)
            pulled, manifest = await _manifest(registry, named, str(image))
            wanted = {name: str(fetch.params[name]) for name in ("name", "kind")}
            layer = layer_of(manifest, **wanted, what=f"image {image}")
            what = f"{wanted['name']!r} of image {image}"
            packed = await registry.blob(layer, max_bytes=fetch.max_bytes + PACKING_BYTES, what=what)
            data = unpack(packed, layer.media_type, max_bytes=fetch.max_bytes, what=what)
            digests = [pulled.digest, named.digest]
            attached = await attached_signatures(registry, digests) if fetch.wants_signatures else ()
        # What the manifest says is what comes; where a blob is kept that has its digest says nothing more.
        found_at = pulled.found_at or named.found_at
        annotations = {}
        if is_bundle(manifest):
            annotations = {name: layer.annotation(name) for name in (NAME, KIND, API_VERSION)}
        if named is not pulled:
            annotations[INDEX_DIGEST] = str(named.digest)
        return Resolved(
            data=data,
            source=Source(image.uri, {pulled.digest.algorithm: pulled.digest.hex}, wanted["name"]),
            annotations=annotations,
            pinned={**fetch.params, "bundle": str(image.at(named.digest))},
            attached=attached,
            found_at="" if found_at == image.uri else found_at,
        )


def _is_one_digest(digests: Mapping[str, str]) -> bool:
    try:
        return len([Digest.parse(f"{algorithm}:{digits}") for algorithm, digits in digests.items()]) == 1
    except ValueError:
        return False


async def _manifest(registry: Registry, named: Pulled, what: str) -> tuple[Pulled, Manifest]:
    """The manifest that a name stands for, and its digest: itself, or what its index chooses."""
    pulled = named
    if isinstance(named.document, Index):
        entry = chosen(named.document, what=f"image {what}")
        pulled = await registry.manifest(entry.parsed_digest, size=entry.size)
    if isinstance(pulled.document, Index):
        raise unsupported(f"image {what}", "an index of manifests", "one of further indexes")
    return pulled, pulled.document


def _access(fetch: Fetch, image: Image) -> Access:
    return Access(
        http=http_of(fetch, name_address=name_place),
        clock=fetch.services.clock,
        login=lambda: _login(fetch, image),
        realms=as_list(fetch.settings.get("token-realms", "")),
        is_plain_http=is_plain_http(image, fetch.settings),
    )


async def _login(fetch: Fetch, image: Image) -> Login | None:
    """The user and password for an image: of the Secret that is named, else of the ServiceAccount's Secrets.

    Read when a registry asks for them, and not before: most definitions are public.
    """
    secrets = fetch.services.secrets
    if "secret" in fetch.params:
        with secret_of("secret"):
            secret = await secrets.data(str(fetch.params["secret"]))
        login = login_for(image, secret)
        if login is not None:
            return login
    if "serviceAccount" not in fetch.params:
        return None
    account = str(fetch.params["serviceAccount"])
    try:
        with secret_of("serviceAccount"):
            names = await secrets.pull_secrets(account)
    except ResolutionError as error:
        # One that nobody has asked for by name need not be there.
        if error.facts.may_pass or account != fetch.settings.get("default-service-account", ""):
            raise
        return None
    for name in names[:_MAX_PULL_SECRETS]:
        try:
            login = login_for(image, await secrets.data(name))
        except ResolutionError as error:
            if error.facts.may_pass:
                raise
            continue  # as Kubernetes has it: a pull Secret that is not there is none
        if login is not None:
            return login
    return None
