"""Kubeconfig files: the clusters, users and contexts that a client can use.

The rules are those of kubectl. An explicit file is used alone. Otherwise the files in ``KUBECONFIG`` are merged, and
the first one with a value wins. Without them, the file is ``~/.kube/config``. A relative path in a file is relative to
that file.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from konverge._internal.client.config import ClusterConfig, TlsConfig
from konverge._internal.client.credentials import (
    AnonymousCredentials,
    BasicAuth,
    BearerToken,
    Credentials,
    TokenFile,
    is_header_value,
)
from konverge._internal.client.exec_credentials import ExecCredentials
from konverge._internal.client.exec_plugin import parse_exec_plugin
from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.client.oidc import OidcCredentials, parse_oidc_provider
from konverge._internal.client.proxy_environment import find_usable_proxy
from konverge._internal.client.server_url import find_url_error, redact_url
from konverge._internal.kube import Object
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError, NoKubeconfigError

__all__ = ["list_kubeconfig_paths", "load_kubeconfig"]

_MAX_FILE_BYTES = 16 * 1024 * 1024

# The extension of a cluster that contains data for exec plug-ins.
_PLUGIN_EXTENSION = "client.authentication.k8s.io/exec"


# The valid punctuation in a header's name (RFC 9110, 5.6.2); the server decodes %xx in such a name.
_HEADER_NAME_PUNCTUATION = "!#$&'*+-.^_`|~"


@dataclass(frozen=True, slots=True)
class _NamedEntry:
    """A named cluster, user or context, with its file."""

    fields: Mapping[str, Any]
    file: Path

    def get_text(self, name: str) -> str:
        """Return a field as text; empty if it is absent. YAML parses some names and tokens as numbers."""
        value = self.fields.get(name)
        return "" if value is None or isinstance(value, Mapping | list) else str(value)

    def get_flag(self, name: str) -> bool:
        return self.fields.get(name) is True

    def get_path(self, name: str) -> Path | None:
        """Return a field with a path, resolved relative to the kubeconfig."""
        path = self.get_text(name)
        if "\0" in path:
            raise ConfigurationError(f"{self.file}: {name}: expected a path, found a NUL character")
        return self.file.parent / path if path else None


@dataclass(slots=True)
class _MergedKubeconfig:
    files: list[Path] = field(default_factory=list)
    current_context: str = ""
    clusters: dict[str, _NamedEntry] = field(default_factory=dict)
    users: dict[str, _NamedEntry] = field(default_factory=dict)
    contexts: dict[str, _NamedEntry] = field(default_factory=dict)

    @property
    def location(self) -> str:
        return ", ".join(map(str, self.files))


def list_kubeconfig_paths(path: str | Path | None, env: Mapping[str, str]) -> list[Path]:
    """List the kubeconfig files to use, whether they exist or not."""
    if path is not None:
        return [Path(path).expanduser()]
    if variable := env.get("KUBECONFIG"):
        return [Path(entry) for entry in variable.split(os.pathsep) if entry]
    home = env.get("HOME") or env.get("USERPROFILE")
    return [Path(home) / ".kube" / "config"] if home else []


def load_kubeconfig(
    path: str | Path | None = None,
    context: str | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    clock: Clock | None = None,
) -> ClusterConfig:
    """Load the kubeconfig and select a context.

    Args:
        path: The only file to read; None for the files from `env`.
        context: The context; None for the current context of the file.
        env: The environment with ``KUBECONFIG``, ``HOME`` and the proxy variables.
        clock: The source of time for credentials.

    Raises:
        konverge.errors.ConfigurationError: The file or the context does not exist, or is invalid.
    """
    paths = list_kubeconfig_paths(path, env)
    existing = [file for file in paths if file.is_file()]
    if not existing:
        searched = ", ".join(map(str, paths)) or "nothing, since HOME is not set"
        raise NoKubeconfigError(f"no kubeconfig: searched {searched}. Set KUBECONFIG, or create one of these files")
    merged = _merge(existing)
    name = context or merged.current_context
    if not name:
        raise ConfigurationError(
            f"{merged.location} has no current context: select one ({_describe_names(merged.contexts)})"
        )
    selected = merged.contexts.get(name)
    if selected is None:
        role = "" if context else ", which is its current context"
        raise ConfigurationError(
            f'{merged.location} has no context "{name}"{role} ({_describe_names(merged.contexts)})'
        )
    return _resolve(merged, name, selected, env, clock or SystemClock())


def _describe_names(entries: Mapping[str, object]) -> str:
    return f"it has: {', '.join(sorted(entries))}" if entries else "it has none"


def _merge(files: list[Path]) -> _MergedKubeconfig:
    merged = _MergedKubeconfig(files)
    for file in files:
        document = _read_file(file)
        merged.current_context = merged.current_context or _NamedEntry(document, file).get_text("current-context")
        for kind, entries in (("cluster", merged.clusters), ("user", merged.users), ("context", merged.contexts)):
            items = document.get(f"{kind}s") or []
            if not isinstance(items, list):
                raise ConfigurationError(f"{file}: {kind}s: expected a list")
            for item in items:
                fields = item.get(kind) if isinstance(item, Mapping) else None
                if not isinstance(item, Mapping) or not isinstance(fields, Mapping | None):
                    raise ConfigurationError(f"{file}: {kind}s: expected entries with a name and a {kind}")
                entries.setdefault(str(item.get("name", "")), _NamedEntry(fields or {}, file))
    return merged


def _read_file(file: Path) -> Mapping[str, Any]:
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise ConfigurationError(f"{file}: not a kubeconfig: expected at most {_MAX_FILE_BYTES} bytes")
        text = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read the kubeconfig {file}: {error.strerror}") from error
    document = _decode_document(file, text)
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ConfigurationError(f"{file}: not a kubeconfig: expected a mapping with clusters, users and contexts")
    return document


def _decode_document(file: Path, text: bytes) -> Any:
    # JSON is YAML, and parsing it does not require a library of 3 MB.
    if text.startswith(b"{"):
        with suppress(*DECODE_ERRORS):
            return msgspec.json.decode(text)
    # Not at the top: an operator in a Pod reads no kubeconfig.
    import yaml

    from konverge._internal.kube.yaml_loader import YamlLimits, load_yaml

    try:
        return load_yaml(text, YamlLimits(may_repeat_fields=True))  # as kubectl does
    except yaml.YAMLError as error:
        # The text of the parser quotes the file, which contains keys: report only the position.
        mark = getattr(error, "problem_mark", None)
        position = f" near line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(f"the kubeconfig {file} is not YAML{position}") from None


def _resolve(
    merged: _MergedKubeconfig, name: str, context: _NamedEntry, env: Mapping[str, str], clock: Clock
) -> ClusterConfig:
    source = f'context "{name}" of {context.file}'
    cluster_name, user_name = context.get_text("cluster"), context.get_text("user")
    cluster = merged.clusters.get(cluster_name)
    if cluster is None:
        raise ConfigurationError(
            f'{source} names the cluster "{cluster_name}", which {merged.location} does not have '
            f"({_describe_names(merged.clusters)})"
        )
    user = _NamedEntry({}, context.file)
    if user_name:
        if user_name not in merged.users:
            raise ConfigurationError(
                f'{source} names the user "{user_name}", which {merged.location} does not have '
                f"({_describe_names(merged.users)})"
            )
        user = merged.users[user_name]
    server = _parse_server(cluster, cluster_name)
    config = ClusterConfig(
        server=server,
        source=source,
        namespace=context.get_text("namespace") or "default",
        tls=_parse_tls(cluster, cluster_name, user, user_name),
        impersonation=_parse_impersonation(user),
        proxy_url=_parse_proxy(cluster, cluster_name) or find_usable_proxy(server, env),
    )
    return replace(config, credentials=_parse_credentials(user, user_name, config, cluster, env, clock))


def _parse_server(cluster: _NamedEntry, name: str) -> str:
    server = cluster.get_text("server").rstrip("/")
    if not server:
        raise ConfigurationError(f'cluster "{name}" of {cluster.file} has no server')
    if "://" not in server:
        server = f"https://{server}"
    if problem := find_url_error(server):
        raise ConfigurationError(
            f'cluster "{name}" of {cluster.file}: server: expected an http(s) URL, '
            f'found "{redact_url(server)}": {problem}'
        )
    return server


def _parse_proxy(cluster: _NamedEntry, name: str) -> str:
    proxy = cluster.get_text("proxy-url")
    problem = find_url_error(proxy, may_have_user=True) if proxy else ""
    if problem:  # the URL is not quoted: it may contain a password
        raise ConfigurationError(
            f'cluster "{name}" of {cluster.file}: proxy-url: expected an http:// or https:// URL: {problem}; '
            "other kinds of proxies are not supported"
        )
    return proxy


def _parse_tls(cluster: _NamedEntry, cluster_name: str, user: _NamedEntry, user_name: str) -> TlsConfig:
    insecure = cluster.get_flag("insecure-skip-tls-verify")
    authority, authority_file = _read_content(cluster, f'cluster "{cluster_name}"', "certificate-authority")
    if insecure and authority:
        raise ConfigurationError(
            f'cluster "{cluster_name}" of {cluster.file} has a certificate-authority and insecure-skip-tls-verify: '
            "keep one of them"
        )
    certificate, certificate_file = _read_content(user, f'user "{user_name}"', "client-certificate")
    key, key_file = _read_content(user, f'user "{user_name}"', "client-key")
    if bool(certificate) != bool(key):
        present, missing = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        raise ConfigurationError(f'user "{user_name}" of {user.file} has a {present} but no {missing}')
    return TlsConfig(
        authority,
        certificate,
        key,
        cluster.get_text("tls-server-name"),
        insecure,
        authority_file,
        certificate_file,
        key_file,
    )


def _read_content(entry: _NamedEntry, whose: str, name: str) -> tuple[bytes, Path | None]:
    """Return the content of ``<name>-data`` (base64), or else of the file ``<name>`` together with its path."""
    if data := entry.get_text(f"{name}-data"):
        try:
            return base64.b64decode(data, validate=True), None
        except ValueError:
            raise ConfigurationError(f"{whose} of {entry.file}: {name}-data is not base64") from None
    path = entry.get_path(name)
    if path is None:
        return b"", None
    try:
        return path.read_bytes(), path
    except OSError as error:
        raise ConfigurationError(f"{whose} of {entry.file}: cannot read {name} {path}: {error.strerror}") from error


def _parse_credentials(
    user: _NamedEntry, name: str, config: ClusterConfig, cluster: _NamedEntry, env: Mapping[str, str], clock: Clock
) -> Credentials:
    """Parse the credentials: those in the file take precedence over those to fetch, as in kubectl."""
    whose = f'user "{name}" of {user.file}'
    token, token_file = user.get_text("token"), user.get_path("tokenFile")
    if token_file is not None:
        return TokenFile(token_file, clock, token=token, description=f"the token of {whose} in {token_file}")
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(f"the token of {whose}: expected printable ASCII characters, found others")
    if token:
        return BearerToken(token, f"the token of {whose}")
    if user.get_text("username"):
        return BasicAuth(user.get_text("username"), user.get_text("password"), f"the password of {whose}")
    if config.tls.certificate:
        return AnonymousCredentials(f"the client certificate of {whose}")
    fetched = [kind for kind in ("exec", "auth-provider") if user.fields.get(kind)]
    if len(fetched) == 2:
        raise ConfigurationError(f"{whose} has an exec plug-in and an auth-provider: keep one of them")
    if fetched:
        fields = user.fields[fetched[0]]
        if not isinstance(fields, Mapping):
            raise ConfigurationError(f"{fetched[0]} of {whose} must be a mapping")
        if fetched == ["exec"]:
            plugin_cluster = _build_plugin_cluster(config, cluster)
            plugin = parse_exec_plugin(fields, whose=whose, folder=user.file.parent, env=env, cluster=plugin_cluster)
            return ExecCredentials(plugin, clock)
        return _parse_auth_provider(fields, whose, user.file.parent, env, clock)
    return AnonymousCredentials(
        f"a request without credentials ({whose} has none)" if name else "a request without credentials"
    )


def _parse_auth_provider(
    fields: Mapping[str, Any], whose: str, folder: Path, env: Mapping[str, str], clock: Clock
) -> Credentials:
    config = fields.get("config")
    if fields.get("name") != "oidc" or not isinstance(config, Mapping):
        raise ConfigurationError(
            f'{whose} has the auth-provider "{fields.get("name", "")}": expected oidc with its config, the only one '
            "left in Kubernetes. Use an exec plug-in"
        )
    return OidcCredentials(parse_oidc_provider(config, whose=whose, folder=folder, env=env), clock)


def _build_plugin_cluster(config: ClusterConfig, cluster: _NamedEntry) -> Object:
    """Build the cluster for an exec plug-in that requests it; empty fields are left out."""
    extensions = cluster.fields.get("extensions")
    plugin_extensions = [
        entry.get("extension")
        for entry in (extensions if isinstance(extensions, list) else [])
        if isinstance(entry, Mapping) and entry.get("name") == _PLUGIN_EXTENSION
    ]
    fields: Object = {
        "server": config.server,
        "tls-server-name": config.tls.server_name,
        "insecure-skip-tls-verify": config.tls.insecure,
        "certificate-authority-data": base64.b64encode(config.tls.authority).decode("ascii"),
        "proxy-url": cluster.get_text("proxy-url"),
        "disable-compression": cluster.get_flag("disable-compression"),
        "config": plugin_extensions[0] if plugin_extensions else None,
    }
    return {name: value for name, value in fields.items() if value}


def _parse_impersonation(user: _NamedEntry) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    if user.get_text("as"):
        headers.append(("Impersonate-User", user.get_text("as")))
    if user.get_text("as-uid"):
        headers.append(("Impersonate-Uid", user.get_text("as-uid")))
    groups = user.fields.get("as-groups")
    headers += [("Impersonate-Group", str(group)) for group in (groups if isinstance(groups, list) else [])]
    extra = user.fields.get("as-user-extra")
    for key, values in extra.items() if isinstance(extra, Mapping) else ():
        escaped = quote(str(key), safe=_HEADER_NAME_PUNCTUATION, errors="replace")
        headers += [
            (f"Impersonate-Extra-{escaped}", str(value)) for value in (values if isinstance(values, list) else [])
        ]
    for header, value in headers:
        if not is_header_value(value):
            raise ConfigurationError(
                f"the user of {user.file}: {header}: expected a header value, found control characters"
            )
    return tuple(headers)
