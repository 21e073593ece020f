"""Parsed options of ``konverge resolve``: the reference, the policies and the setup of the engine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import click

from konverge._internal.cli.main import is_verbose
from konverge._internal.cli.yaml_documents import read_objects
from konverge._internal.client.connect import load_cluster_config
from konverge._internal.crd import crd_manifest
from konverge._internal.kube import Object
from konverge.errors import ConfigurationError
from konverge_resolution._internal.content_store import find_content_folder
from konverge_resolution._internal.engine import EngineOptions
from konverge_resolution._internal.local_engine import CredentialSource, ErrorHints, LocalSetup
from konverge_resolution._internal.network import AllowedNetworks, EnvironmentProxies
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.reference import Digest, Reference, Value
from konverge_resolution._internal.requests.api_types import ResolutionPolicy
from konverge_resolution._internal.requests.policy_parsing import parse_policy
from konverge_resolution._internal.resolvers import DISK, list_resolver_names
from konverge_resolution._internal.signatures import SignatureVerifier
from konverge_resolution._internal.user_credentials import UserCredentialStore

__all__ = ["ResolveFlags", "read_file"]

_MAX_CERTIFICATES = 1 << 20
_WITH_LOCK = {
    "is_offline": "--offline",
    "is_update": "--update",
    "is_verifying": "--verify",
    "content": "--content",
}
_HINTS = ErrorHints(
    networks="permit it with --allow-network CIDR",
    credentials="--credential NAME/KEY=env:VARIABLE or file:PATH",
)


@dataclass(frozen=True, slots=True)
class ResolveFlags:
    """Values of all options; made by `of`.

    Args:
        reference: The reference; None with only a lock file.
        output: The output format.
        namespace: The namespace for policies.
        seconds: Time limit of the command in seconds.
        lock_file: The lock file; None for none.
        content: The content folder of the lock file.
        is_offline: Contact no source.
        is_update: Lock the current content.
        is_verifying: Fetch all content from its source again, and compare it.
        setup: The configuration of the engine.
        user_credentials: The credentials of the user; None for none.
        is_verbose: Whether the debug log is printed.
        kubeconfig: The kubeconfig file and its context; None without a cluster.
    """

    reference: Reference | None
    output: Literal["content", "json"]
    namespace: str
    seconds: float
    lock_file: Path | None
    content: Path
    is_offline: bool
    is_update: bool
    is_verifying: bool
    setup: LocalSetup
    user_credentials: UserCredentialStore | None
    is_verbose: bool
    kubeconfig: tuple[Path | None, str | None] | None

    @classmethod
    def of(
        cls,
        ctx: click.Context,
        given: Mapping[str, Any],
        resolver: str = "",
        params: Mapping[str, str | None] | None = None,
    ) -> ResolveFlags:
        """Parse the options of a command.

        Args:
            ctx: The command.
            given: The options for all resolvers.
            resolver: The resolver; empty for none.
            params: Its parameters; None for an option that was not given.

        Raises:
            click.UsageError: They cannot be combined, or one cannot be parsed.
            konverge.errors.ConfigurationError: A file cannot be read.
        """
        lock_file: Path | None = given["lock_file"]
        for name, option in _WITH_LOCK.items():
            if given[name] and lock_file is None:
                raise click.UsageError(f"{option}: requires --lock FILE", ctx)
        if given["is_offline"] and given["is_update"]:
            raise click.UsageError("--offline and --update cannot be combined: an update contacts the sources", ctx)
        if given["is_verifying"] and (given["is_offline"] or given["is_update"]):
            other = "--offline contacts no source" if given["is_offline"] else "--update replaces the locked content"
            raise click.UsageError(f"--verify compares locked content with its source, and {other}: use only one", ctx)
        try:
            credentials = tuple(CredentialSource.parse(text) for text in given["credentials"])
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param_hint="--credential") from None
        try:
            AllowedNetworks(given["networks"])
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param_hint="--allow-network") from None
        if resolver == DISK and given.get("directory") is None:
            raise click.UsageError("resolver disk: requires --directory DIR, below which it reads the file", ctx)
        settings = _parse_pairs(ctx, "--setting", given["settings"])
        if settings and not resolver:
            raise click.UsageError("--setting: requires a resolver", ctx)
        users = None if given["is_without_user"] else UserCredentialStore()
        if resolver == "git" and users is not None:
            settings.setdefault("allow-ssh", "true")  # the user's ssh has what it needs
        needs_cluster = resolver == "cluster" or given["kubeconfig_file"] or given["context"]
        # For the resolver cluster, -n has no default: the kubeconfig's context provides it, as for kubectl.
        namespace = given["namespace"] or load_cluster_config(given["kubeconfig_file"], given["context"]).namespace
        is_for_object = given["namespace"] is not None or "default-namespace" not in settings
        defaults = {"namespace": namespace} if resolver == "cluster" and is_for_object else {}
        return cls(
            reference=_build_reference(ctx, resolver, params or {}, given, defaults) if resolver else None,
            output=given.get("output", "content"),
            namespace=namespace,
            seconds=given["seconds"],
            lock_file=lock_file,
            content=given["content"] or find_content_folder(lock_file or Path()),
            is_offline=given["is_offline"],
            is_update=given["is_update"],
            is_verifying=given["is_verifying"],
            setup=LocalSetup(
                settings={resolver: settings} if settings else {},
                policies=tuple(policy for file in given["policy_files"] for policy in _read_policies(file)),
                credentials=credentials,
                networks=given["networks"],
                certificates=_read_certificates(given["certificates"]),
                options=EngineOptions(timeout=timedelta(seconds=given["seconds"])),
                verifier=SignatureVerifier(given["trusted_root"]),
                hints=_HINTS,
                cache_folder=None if given["is_uncached"] or given["is_verifying"] else _find_cache_folder(),
                directory=given.get("directory"),
                user_credentials=users,
                proxies=None if users is None else _parse_proxies(),
            ),
            user_credentials=users,
            is_verbose=is_verbose(ctx),
            kubeconfig=(given["kubeconfig_file"], given["context"]) if needs_cluster else None,
        )


def _find_cache_folder() -> Path | None:
    """Return the folder of the cache; None for a user without a home."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # the XDG specification: a relative path is ignored
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            return None
    return caches / "konverge" / "definitions"


def _build_reference(
    ctx: click.Context,
    resolver: str,
    params: Mapping[str, str | None],
    given: Mapping[str, Any],
    defaults: Mapping[str, str],
) -> Reference:
    found: dict[str, Value] = {name: value for name, value in params.items() if value is not None}
    for name, value in _parse_pairs(ctx, "--param", given["parameters"]).items():
        if name in found:
            raise click.UsageError(f"--param {name}: the resolver's own option sets it, too; use only one", ctx)
        found[name] = value
    try:
        digest = None if given["digest"] is None else Digest.parse(given["digest"])
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param_hint="--digest") from None
    return Reference(resolver, {**defaults, **found}, digest)


def _parse_pairs(ctx: click.Context, option: str, given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals or name in found:
            raise click.BadParameter(
                f"expected NAME=VALUE, each name once, found {name[:40]!r}", ctx, param_hint=option
            )
        found[name] = value
    return found


def _read_policies(file: Path) -> list[Policy]:
    found = []
    for obj in read_objects(file):
        if obj.get("kind") != "ResolutionPolicy":
            raise ConfigurationError(f"{file}: expected ResolutionPolicy objects, found {str(obj.get('kind'))[:80]}")
        if not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
            raise ConfigurationError(f"{file}: ResolutionPolicy: expected metadata.name, found none")
        # The API server would refuse an unknown field; a misspelled field must not weaken a policy.
        if unknown := sorted(
            _find_unknown_fields(obj, crd_manifest(ResolutionPolicy)["spec"]["versions"][0]["schema"])
        ):
            raise ConfigurationError(f"{file}: ResolutionPolicy {obj['metadata']['name']}: unknown field {unknown[0]}")
        policy = parse_policy(obj, list_resolver_names() | {DISK})
        if not isinstance(policy, Policy):
            raise ConfigurationError(f"{file}: ResolutionPolicy {policy.scope.name}: {'; '.join(policy.errors)}")
        found.append(policy)
    if not found:
        raise ConfigurationError(f"{file}: expected ResolutionPolicy objects, found none")
    return found


def _find_unknown_fields(obj: Object, schema: Object) -> Iterator[str]:
    """Yield the paths of fields that the schema does not have; all fields of metadata are valid."""
    pending = [("spec", obj.get("spec"), schema["openAPIV3Schema"]["properties"]["spec"])]
    yield from (name for name in obj if name not in schema["openAPIV3Schema"]["properties"])
    while pending:
        path, value, below = pending.pop()
        if isinstance(value, list) and "items" in below:
            pending += [(f"{path}[{place}]", item, below["items"]) for place, item in enumerate(value)]
        elif isinstance(value, dict) and "properties" in below:
            yield from (f"{path}.{name}" for name in value if name not in below["properties"])
            pending += [
                (f"{path}.{name}", value[name], each) for name, each in below["properties"].items() if name in value
            ]


def _parse_proxies() -> EnvironmentProxies:
    try:
        return EnvironmentProxies.parse(os.environ)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _read_certificates(file: Path | None) -> str:
    if file is None:
        return ""
    data = read_file(file, _MAX_CERTIFICATES)
    if len(data) > _MAX_CERTIFICATES:
        raise ConfigurationError(f"{file}: expected at most {_MAX_CERTIFICATES} bytes, found more")
    return data.decode("utf-8", "replace")


def read_file(file: Path, max_bytes: int) -> bytes:
    """Read a file that an option names; of a longer file, read only enough to detect its length.

    Raises:
        konverge.errors.ConfigurationError: The file cannot be read.
    """
    try:
        with file.open("rb") as opened:
            return opened.read(max_bytes + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
