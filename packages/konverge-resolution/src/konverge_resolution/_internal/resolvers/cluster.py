"""Resolver ``cluster``: an object of the cluster, from a namespace that the operator permits.

The result has the object as its author wrote it, without its status and fields of the API server. A Secret is never
read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from konverge._internal.kube import Object, ObjectKey, RestMapping
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge._internal.suggestions import did_you_mean
from konverge.errors import ApiError, ConnectionFailedError, ForbiddenError, NotFoundError
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.parameter_checks import build_param_error, check_names, get_text
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters, to_canonical_json
from konverge_resolution._internal.relative_references import join_path
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest, Parameter, Setting
from konverge_resolution._internal.resolver_settings import FETCH_SETTINGS, as_boolean, as_list

__all__ = ["ClusterResolver", "is_readable", "strip_server_fields"]

_KIND = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
_PLURALS = (("ies", "y"), ("es", ""), ("s", ""))
_VERSION = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*")
_SERVERS_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
_TEKTON = "tekton.dev"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ClusterResolver:
    """Fetches one object by kind, name and namespace."""

    name = "cluster"
    reads = ()
    parameters: Mapping[str, Parameter] = {
        "kind": Parameter("Kind: Task, task or tasks", setting="default-kind"),
        "name": Parameter("Name of the object", required=True),
        "namespace": Parameter("Namespace of the object", setting="default-namespace"),
        "apiVersion": Parameter(
            "Version of the kind, such as tekton.dev/v1 (default: preferred version of the API server)"
        ),
    }
    settings: Mapping[str, Setting] = {
        "default-kind": Setting("Kind of references without one", default="task"),
        "default-namespace": Setting("Namespace of references without one"),
        "allowed-namespaces": Setting("Namespaces that may be read; * or empty for all", "list"),
        "blocked-namespaces": Setting(
            "Namespaces that must not be read; * for all except those that are allowed by name", "list"
        ),
        "as-requester": Setting(
            "Refuse objects that the requester's ServiceAccount may not read itself", "boolean", "false"
        ),
        "fetch-timeout": FETCH_SETTINGS["fetch-timeout"],
    }

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the parameters with their defaults.

        Raises:
            ResolutionError: ``InvalidParams`` with the name of the parameter; ``Denied``: the namespace or the kind is
                never read.
        """
        check_names(params, self.parameters)
        kind = _get_text_param(params, "kind", settings.get("default-kind", ""))
        name = _get_text_param(params, "name", "")
        namespace = _get_text_param(params, "namespace", settings.get("default-namespace", "").strip())
        api_version = get_text(params, "apiVersion")
        if not _KIND.fullmatch(kind):
            raise build_param_error("kind", f"expected a kind such as Task, found {kind[:80]!r}")
        if validate_dns_subdomain(name):
            raise build_param_error("name", f"expected the name of an object, found {name[:80]!r}")
        if validate_dns_label(namespace):
            raise build_param_error("namespace", f"expected the name of a namespace, found {namespace[:80]!r}")
        if api_version and not _VERSION.fullmatch(api_version):
            raise build_param_error(
                "apiVersion", f"expected a version such as tekton.dev/v1, found {api_version[:80]!r}"
            )
        if kind.lower() in ("secret", "secrets"):
            raise ResolutionError(
                Reason.DENIED, "parameter 'kind': expected a kind of definitions, found Secret, which is never read"
            )
        allowed, blocked = (as_list(settings.get(f"{word}-namespaces", "")) for word in ("allowed", "blocked"))
        if not is_readable(namespace, allowed=allowed, blocked=blocked):
            message = f"parameter 'namespace': the operator does not permit namespace {namespace!r}"
            raise ResolutionError(Reason.DENIED, message)
        validated = {"kind": kind, "name": name, "namespace": namespace}
        return validated | ({"apiVersion": api_version} if api_version else {})

    def spell_parameter(self, name: str, value: str) -> Sequence[str]:
        """Return the spellings of a value: the kind in lower case, and its possible singular and plural names."""
        if name == "apiVersion" and not value:
            return value, "*"
        if name != "kind":
            return (value,)
        kind = value.lower()
        singulars = [kind.removesuffix(end) + stem for end, stem in _PLURALS if kind.endswith(end)]
        return (kind, *singulars, *(f"{kind.removesuffix(stem)}{end}" for end, stem in _PLURALS if kind.endswith(stem)))

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Return ``cluster://namespace/kind/name``, with the kind as the reference spells it."""
        return _format_uri(ObjectKey(str(params["namespace"]), str(params["name"])), str(params["kind"]))

    def is_pinned(self, params: Parameters) -> bool:
        """Return False, because objects change."""
        return False

    def build_provenance(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Provenance
    ) -> Provenance:
        """Return the path of the object; only the cluster knows the plural of its kind and its UID."""
        version = re.escape(str(params["apiVersion"])) if "apiVersion" in params else r"[a-z0-9./-]+"
        namespace, name = (re.escape(str(params[parameter])) for parameter in ("namespace", "name"))
        fits = re.fullmatch(rf"/apis?/{version}/namespaces/{namespace}/[a-z0-9-]+/{name}@[a-zA-Z0-9-]*", recorded.uri)
        uri = recorded.uri if fits else f"/apis/…/namespaces/{params['namespace']}/…/{params['name']}@…"
        return Provenance(uri, {digest.algorithm: digest.hex})

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        """Return the parameters of another object of the namespace: its name, or its kind, ``/`` and its name.

        Raises:
            ResolutionError: ``InvalidParams``: the path has neither form.
        """
        kind, _, name = join_path(f"{params['kind']}/{params['name']}", path).rpartition("/")
        if not kind or "/" in kind:
            message = f"path {path[:120]!r}: expected a name, or ../kind/name"
            raise ResolutionError(Reason.INVALID_PARAMETERS, message)
        other = {} if kind == params["kind"] else {"kind": kind}
        kept = {key: value for key, value in params.items() if not other or key != "apiVersion"}
        return {**kept, **other, "name": name}

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Return None, because no name is permanent for the content of an object."""
        return None

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Read the object from the cluster.

        Raises:
            ResolutionError: There is no such object, it must not be read, or the API server does not respond.
        """
        cluster = fetch.services.cluster
        if cluster is None:
            raise ResolutionError(Reason.RESOLVER_NOT_AVAILABLE, "resolver 'cluster': no cluster is configured")
        params = {name: str(value) for name, value in fetch.params.items()}
        key = ObjectKey(params["namespace"], params["name"])
        what = f"{params['kind']} {key}"
        try:
            found = await cluster.find(params["kind"], params.get("apiVersion", ""))
            mapping = _select_mapping(found, params, () if found else await cluster.list_kinds())
            if not mapping.namespaced:
                raise build_param_error("kind", f"expected a namespaced kind, found {mapping.gvk.kind}")
            # Before the read: the result must not reveal whether the object exists.
            if as_boolean(fetch.settings.get("as-requester", "false")) and not (
                fetch.user and await cluster.may_get(mapping.gvk, key, user=fetch.user)
            ):
                raise ResolutionError(Reason.DENIED, f"{fetch.user or 'an unknown user'} must not read {what}")
            try:
                obj = await cluster.get(mapping.gvk, key)
            except NotFoundError:
                names = await cluster.list_names(mapping.gvk, key.namespace)
                message = f"{what} does not exist{did_you_mean(key.name, names)}"
                raise ResolutionError(Reason.NOT_FOUND, message) from None
        except NotFoundError:
            raise ResolutionError(Reason.NOT_FOUND, f"{what} does not exist") from None
        except ForbiddenError:
            raise ResolutionError(Reason.DENIED, f"{what}: the resolver has no permission to read it") from None
        except (ApiError, ConnectionFailedError):
            raise ResolutionError(Reason.UNREACHABLE, f"{what}: the API server did not respond") from None
        data = to_canonical_json(strip_server_fields(obj))
        if len(data) > fetch.max_bytes:
            message = f"{what}: expected at most {fetch.max_bytes} bytes, found {len(data)}"
            raise ResolutionError(Reason.TOO_LARGE, message)
        uri = f"{mapping.build_path(key)}@{obj['metadata'].get('uid', '')}"
        return ResolvedContent(
            data,
            Provenance(uri, {"sha256": Digest.of(data).hex}),
            {"resolution.tekton.dev/name": key.name, "resolution.tekton.dev/namespace": key.namespace},
            found_at=_format_uri(key, mapping.gvk.kind),
        )


def _format_uri(key: ObjectKey, kind: str) -> str:
    """Return the name of an object in policies."""
    return f"cluster://{key.namespace}/{kind.lower()}/{key.name}"


def is_readable(namespace: str, *, allowed: tuple[str, ...], blocked: tuple[str, ...]) -> bool:
    """Tell whether a namespace may be read: names take precedence over ``*``, and blocking over allowing.

    Args:
        namespace: The namespace.
        allowed: Names, or ``*``; empty for all.
        blocked: Names, or ``*`` for all except those that are allowed by name.
    """
    if namespace in blocked:
        return False
    if namespace in allowed:
        return True
    if "*" in blocked:
        return False
    return not allowed or "*" in allowed


def strip_server_fields(obj: Object) -> Object:
    """Return an object without its status and the fields that the API server or controllers set."""
    stripped: dict[str, Any] = {name: value for name, value in obj.items() if name != "status"}
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVERS_METADATA}
    annotations = {name: value for name, value in metadata.pop("annotations", {}).items() if name != _LAST_APPLIED}
    stripped["metadata"] = metadata | ({"annotations": annotations} if annotations else {})
    return stripped


def _select_mapping(found: Sequence[RestMapping], params: Mapping[str, str], kinds: Iterable[str] = ()) -> RestMapping:
    """Select the kind. If several API groups have it, prefer Tekton's: its references name no group.

    Raises:
        ResolutionError: ``InvalidParams``: there is no such kind, or it is ambiguous.
    """
    kind = params["kind"]
    if not found:
        version = f" in {params['apiVersion']}" if "apiVersion" in params else ""
        suggestion = did_you_mean(kind, kinds)
        raise build_param_error("kind", f"the cluster serves no kind {kind!r}{version}{suggestion}")
    for mapping in found:
        if len(found) == 1 or mapping.gvk.group == _TEKTON:
            return mapping
    known = ", ".join(mapping.gvk.api_version for mapping in found[:5])
    raise build_param_error("apiVersion", f"expected a version, because {kind!r} stands for several kinds: {known}")


def _get_text_param(params: Parameters, name: str, default: str) -> str:
    value = get_text(params, name) or default
    if not value:
        raise build_param_error(name, "expected a value, found none, and the operator has no default")
    return value
