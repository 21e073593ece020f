"""Parameters and settings of the git resolver, and their validated form. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from konverge_resolution._internal.credential_hosts import CREDENTIAL_SETTINGS
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import CONNECTION_SETTINGS
from konverge_resolution._internal.parameter_checks import build_param_error, check_names, check_secret, get_text
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolver import Parameter, ParameterRole, Setting
from konverge_resolution._internal.resolver_settings import FETCH_SETTINGS, as_boolean
from konverge_resolution._internal.resolvers.git.remotes import Remote, parse_remote
from konverge_resolution._internal.resolvers.git.revisions import (
    is_name,
    normalize_path,
    normalize_revision,
    spell_revision,
)
from konverge_resolution._internal.source_prefix import canonicalize_source

__all__ = [
    "NAME",
    "PARAMETERS",
    "SCM_TYPES",
    "SETTINGS",
    "ApiSource",
    "FileTarget",
    "get_max_memory_bytes",
    "get_max_repository_bytes",
    "parse_target",
    "spell_parameter",
    "validate_listing_params",
    "validate_params",
]

SCM_TYPES = {"github": "https://github.com", "gitlab": "https://gitlab.com", "gitea": ""}
"""Types of servers with a supported API, with the public server of each."""

_CREDENTIAL = ParameterRole.CREDENTIAL

PARAMETERS: dict[str, Parameter] = {
    "url": Parameter(
        "The address of the repository: `https://…`, with `allow-ssh` also `ssh://…` and `git@host:path`",
        setting="default-url",
    ),
    "revision": Parameter(
        "A branch, a tag, a full reference, a commit id, or a range of versions for tags (`v1.x`, `^1.2`)",
        required=True,
        setting="default-revision",
        default="main",
        role=ParameterRole.VERSION,
    ),
    "pathInRepo": Parameter("The path of the file in the repository", required=True),
    "gitToken": Parameter("A Secret in the requester's namespace with a token or password for `url`", role=_CREDENTIAL),
    "gitTokenKey": Parameter("The key of the token in that Secret", default="token", role=_CREDENTIAL),
    "gitUser": Parameter("The user name for the token", setting="git-user", default="git", role=_CREDENTIAL),
    "gitSSHSecret": Parameter(
        "A Secret in the requester's namespace with `ssh-privatekey` and `known_hosts`", role=_CREDENTIAL
    ),
    "repo": Parameter("Instead of `url`: the name of a repository that is read through the server's API"),
    "org": Parameter("The owner of that repository; for GitLab also a group with subgroups", setting="default-org"),
    "scmType": Parameter(
        "The type of that server: `github`, `gitlab` or `gitea`", setting="scm-type", default="github"
    ),
    "serverURL": Parameter(
        "The address of that server; any other than the configured one requires `token`", setting="server-url"
    ),
    "token": Parameter("A Secret in the requester's namespace with a token for the server's API", role=_CREDENTIAL),
    "tokenKey": Parameter("The key of the token in that Secret", default="token", role=_CREDENTIAL),
}
"""Parameters by name, in the order of the documentation."""

SETTINGS: dict[str, Setting] = {
    **FETCH_SETTINGS,
    "default-url": Setting("The repository for references with neither `url` nor `repo`"),
    "default-revision": Setting("The revision for references without one", default="main"),
    "default-org": Setting("The `org` for references with a `repo` and without an `org`"),
    "scm-type": Setting("The type of the server for `repo`", default="github"),
    "server-url": Setting("The address of that server; empty for the public server of its type"),
    "api-token-file": Setting("A file of the resolver process with the token for that server only"),
    "allow-ssh": Setting("Whether ssh addresses are permitted", "boolean", "false"),
    "git-user": Setting("The user name for tokens", default="git"),
    **CREDENTIAL_SETTINGS,
    **CONNECTION_SETTINGS,
    "max-repository-bytes": Setting(
        "Maximum size of the fetches from one repository in bytes", "integer", str(256 << 20)
    ),
    "max-memory-bytes": Setting(
        "Memory limit in bytes for each git process, and for all git processes together",
        "integer",
        str(768 << 20),
    ),
}

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""Name of a repository or its owner."""

_ANY_PATH = "any"
_OF_API = frozenset({"repo", "org", "scmType", "serverURL", "token", "tokenKey"})
_OF_GIT = frozenset({"url", "gitToken", "gitTokenKey", "gitUser", "gitSSHSecret"})


@dataclass(frozen=True, slots=True)
class ApiSource:
    """Repository that is read through a server's API.

    Args:
        type: One of `SCM_TYPES`.
        server: The server of the reference.
        configured: The server that the operator configured; None for none.
        org: The owner of the repository.
        repo: The name of the repository.
    """

    type: str
    server: Remote
    configured: Remote | None
    org: str
    repo: str

    @property
    def is_configured(self) -> bool:
        """Tell whether it is the operator's server, whose token may be used."""
        return self.configured is not None and self.configured.url == self.server.url

    @property
    def uri(self) -> str:
        """The repository as records name it: the address for a clone."""
        return f"{self.server.uri.removesuffix('/-')}/{self.org}/{self.repo}.git"


@dataclass(frozen=True, slots=True)
class FileTarget:
    """File of a repository.

    Args:
        revision: The revision.
        path: The path of the file.
        source: The repository for git, or for its server's API.
    """

    revision: str
    path: str
    source: Remote | ApiSource


def validate_params(params: Parameters, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the normalized parameters with their defaults.

    Args:
        params: The parameters of the reference.
        settings: The settings of the resolver.

    Raises:
        ResolutionError: ``InvalidParams`` with the name of the parameter.
    """
    check_names(params, PARAMETERS)
    found = {name: value for name in params if (value := get_text(params, name))}
    if "url" in found and "repo" in found:
        raise build_param_error("repo", "expected either url or repo, found both; remove one")
    # Parameters of the other access method have no effect, so they are refused.
    others = _OF_GIT if "repo" in found else _OF_API
    if unused := sorted(others & found.keys()):
        way = "with repo, which uses the server's API" if "repo" in found else "without repo, which uses git"
        raise build_param_error(unused[0], f"has no effect {way}; remove it")
    for name, parameter in PARAMETERS.items():
        if name in found or name in others:
            continue
        value = settings.get(parameter.setting, "") if parameter.setting else ""
        value = value or parameter.default or ""
        if value:
            found[name] = value
        elif parameter.required:
            raise build_param_error(name, "expected one, found none")
    found["revision"] = normalize_revision(found["revision"])
    if "repo" in found and not is_name(found["revision"]):
        raise build_param_error("revision", "a range of versions requires url in place of repo")
    found["pathInRepo"] = normalize_path(found["pathInRepo"])
    check_secret(found, "gitToken", "gitTokenKey")
    check_secret(found, "gitSSHSecret")
    check_secret(found, "token", "tokenKey")
    source = parse_target(found, settings).source
    if isinstance(source, Remote):
        found["url"] = source.url
        given, other = ("gitSSHSecret", "gitToken") if source.scheme == "ssh" else ("gitToken", "gitSSHSecret")
        if other in found:
            raise build_param_error(other, f"expected parameter {given!r} for {source.scheme}")
    return found


def validate_listing_params(params: Parameters, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the normalized parameters of a repository, without a file.

    Raises:
        ResolutionError: As `validate_params`; ``InvalidParams``: a file is named, or the server's API is used.
    """
    if "pathInRepo" in params:
        raise build_param_error("pathInRepo", "has no effect on a list of all files; remove it")
    if "repo" in params:
        raise build_param_error("repo", "cannot list files by the server's API; use url")
    validated = validate_params({**params, "pathInRepo": _ANY_PATH}, settings)
    return {name: value for name, value in validated.items() if name != "pathInRepo"}


def spell_parameter(name: str, value: str) -> Sequence[str]:
    """Return the spellings of a value of a parameter (`SpellingResolver.spell_parameter`)."""
    try:
        match name:
            case "revision":
                return spell_revision(value)
            case "url" | "serverURL":
                return (canonicalize_source(parse_remote(value, allows_ssh=True).uri),)
            case "pathInRepo":
                return (normalize_path(value),)
    except ResolutionError:
        pass
    return (value,)


def parse_target(params: Parameters, settings: Mapping[str, str]) -> FileTarget:
    """Parse parameters from `validate_params`.

    Args:
        params: The parameters with their defaults.
        settings: The settings of the resolver.

    Raises:
        ResolutionError: ``InvalidParams`` with the parameter; ``InvalidConfiguration`` with the setting.
    """
    revision, path = str(params["revision"]), str(params.get("pathInRepo", ""))  # none for a list of all files
    if "repo" in params:
        return FileTarget(revision, path, _parse_api_source(params, settings))
    if "url" not in params:
        raise build_param_error("url", "expected a repository's address, or repo and org; found neither")
    allows_ssh = as_boolean(settings.get("allow-ssh") or SETTINGS["allow-ssh"].default)
    return FileTarget(revision, path, parse_remote(str(params["url"]), allows_ssh=allows_ssh))


def _parse_api_source(params: Parameters, settings: Mapping[str, str]) -> ApiSource:
    type_, org, repo = str(params["scmType"]), str(params.get("org", "")), str(params["repo"])
    if type_ not in SCM_TYPES:
        raise build_param_error("scmType", f"expected {', '.join(SCM_TYPES)}; found {type_[:40]!r}")
    if not org:
        raise build_param_error("org", "expected the owner of the repository, found none")
    parts = org.split("/") if type_ == "gitlab" else [org]
    for name, part in [*(("org", part) for part in parts), ("repo", repo)]:
        if not NAME.fullmatch(part):
            raise build_param_error(name, "expected letters, digits, '.', '_' and '-'")
    # The settings that the reference selected determine the operator's server.
    configured = settings.get("server-url", "") or SCM_TYPES.get(settings.get("scm-type", "") or "github", "")
    operators = _parse_configured_server(configured) if configured else None
    server = str(params.get("serverURL", "")) or SCM_TYPES[type_]
    if not server:
        raise build_param_error("serverURL", f"expected the address of a {type_} server, found none")
    return ApiSource(
        type_,
        _parse_server(server, "serverURL"),
        operators,
        org,
        repo,
    )


def _parse_configured_server(text: str) -> Remote:
    try:
        return _parse_server(text, "server-url")
    except ResolutionError as error:
        message = error.message.removeprefix("parameter 'server-url'")
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting 'server-url'{message}") from None


def _parse_server(text: str, name: str) -> Remote:
    # The setting is a server without a path. `parse_remote` requires the path of a repository: "-" stands for one.
    return parse_remote(f"{text.rstrip('/')}/-", parameter=name)


def get_max_repository_bytes(settings: Mapping[str, str]) -> int:
    """Return the limit for fetches of one repository in bytes."""
    return int(settings.get("max-repository-bytes") or SETTINGS["max-repository-bytes"].default)


def get_max_memory_bytes(settings: Mapping[str, str]) -> int:
    """Return the memory limit of git in bytes."""
    return int(settings.get("max-memory-bytes") or SETTINGS["max-memory-bytes"].default)
