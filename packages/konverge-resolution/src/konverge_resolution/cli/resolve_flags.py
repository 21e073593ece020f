"""What the options of ``konverge resolve`` say: a reference, policies, what an engine is set up with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import click

from konverge.cli.yaml_documents import read_objects
from konverge.client.connect import load_cluster_config
from konverge.crd import crd_manifest
from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge_resolution.content_store import find_content_folder
from konverge_resolution.engine import EngineOptions
from konverge_resolution.local_engine import CredentialSource, ErrorHints, LocalSetup
from konverge_resolution.network import AllowedNetworks
from konverge_resolution.policy import Policy
from konverge_resolution.reference import Digest, Reference, Value
from konverge_resolution.requests.api_types import ResolutionPolicy
from konverge_resolution.requests.policy_parsing import parse_policy
from konverge_resolution.resolvers import list_resolver_names
from konverge_resolution.signatures import SignatureVerifier

__all__ = ["ResolveFlags", "read_file"]

_MAX_CERTIFICATES = 1 << 20
_WITH_LOCK = {
    "is_offline": "--offline",
    "is_update": "--update",
    "is_verifying": "--verify",
    "content": "--content",
}
_HINTS = ErrorHints(
    networks="--allow-network CIDR allows one",
    credentials="--credential NAME/KEY=env:VARIABLE or file:PATH",
)


@dataclass(frozen=True, slots=True)
class ResolveFlags:
    """What the options say; made by `of`.

    Args:
        reference: What to get; None when there is a lock file alone.
        output: What to print of it.
        namespace: For which namespace policies are asked.
        seconds: How long everything may take.
        lock_file: The lock file; None for none.
        content: Its folder of content.
        is_offline: Ask nobody.
        is_update: Lock what is there now.
        is_verifying: Get all content from its source again, and compare it.
        setup: What the engine is set up with.
        kubeconfig: The kubeconfig file and its context, for a cluster; None where none is needed.
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
    kubeconfig: tuple[Path | None, str | None] | None

    @classmethod
    def of(
        cls,
        ctx: click.Context,
        given: Mapping[str, Any],
        resolver: str = "",
        params: Mapping[str, str | None] | None = None,
    ) -> ResolveFlags:
        """Read the options.

        Args:
            ctx: The command.
            given: The options of all resolvers.
            resolver: The resolver; empty for none.
            params: Its parameters, None where an option was not given.

        Raises:
            click.UsageError: They do not go together, or one cannot be read.
            konverge.errors.ConfigurationError: A file cannot be used.
        """
        lock_file: Path | None = given["lock_file"]
        for name, option in _WITH_LOCK.items():
            if given[name] and lock_file is None:
                raise click.UsageError(f"{option} goes with --lock FILE", ctx)
        if given["is_offline"] and given["is_update"]:
            raise click.UsageError("--offline asks nobody, and --update asks what is there now: give one of them", ctx)
        if given["is_verifying"] and (given["is_offline"] or given["is_update"]):
            other = "--offline asks nobody" if given["is_offline"] else "--update takes what is there now"
            raise click.UsageError(f"--verify compares what is locked with its source, and {other}: give one", ctx)
        try:
            credentials = tuple(CredentialSource.parse(each) for each in given["credentials"])
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param_hint="--credential") from None
        try:
            AllowedNetworks(given["networks"])
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param_hint="--allow-network") from None
        settings = _parse_pairs(ctx, "--setting", given["settings"])
        if settings and not resolver:
            raise click.UsageError("--setting is for one resolver: name it", ctx)
        needs_cluster = resolver == "cluster" or given["kubeconfig_file"] or given["context"]
        # Of cluster, -n has no default: where it is not given, the kubeconfig's context says it, as to kubectl.
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
            ),
            kubeconfig=(given["kubeconfig_file"], given["context"]) if needs_cluster else None,
        )


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
            raise click.UsageError(f"--param {name} is given by an option of its own, too: give one of them", ctx)
        found[name] = value
    try:
        digest = None if given["digest"] is None else Digest.parse(given["digest"])
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param_hint="--digest") from None
    return Reference(resolver, {**defaults, **found}, digest)


def _parse_pairs(ctx: click.Context, option: str, given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
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
            raise ConfigurationError(f"{file}: a ResolutionPolicy has no metadata.name")
        # A server would refuse a field that it does not know; what is misspelt must not be a policy that asks for less.
        if unknown := sorted(
            _find_unknown_fields(obj, crd_manifest(ResolutionPolicy)["spec"]["versions"][0]["schema"])
        ):
            raise ConfigurationError(f"{file}: ResolutionPolicy {obj['metadata']['name']}: unknown field {unknown[0]}")
        policy = parse_policy(obj, list_resolver_names())
        if not isinstance(policy, Policy):
            raise ConfigurationError(f"{file}: ResolutionPolicy {policy.scope.name}: {'; '.join(policy.errors)}")
        found.append(policy)
    if not found:
        raise ConfigurationError(f"{file}: expected ResolutionPolicy objects, found none")
    return found


def _find_unknown_fields(obj: Object, schema: Object) -> Iterator[str]:
    """The paths of fields that a definition's schema does not have; of metadata everything is known."""
    pending = [("spec", obj.get("spec"), schema["openAPIV3Schema"]["properties"]["spec"])]
    yield from (name for name in obj if name not in schema["openAPIV3Schema"]["properties"])
    while pending:
        path, value, below = pending.pop()
        if isinstance(value, list) and "items" in below:
            pending += [(f"{path}[{place}]", each, below["items"]) for place, each in enumerate(value)]
        elif isinstance(value, dict) and "properties" in below:
            yield from (f"{path}.{name}" for name in value if name not in below["properties"])
            pending += [
                (f"{path}.{name}", value[name], each) for name, each in below["properties"].items() if name in value
            ]


def _read_certificates(file: Path | None) -> str:
    return "" if file is None else read_file(file, _MAX_CERTIFICATES).decode("utf-8", "replace")


def read_file(file: Path, max_bytes: int) -> bytes:
    """A file that an option names, and of a longer one no more than tells that it is longer.

    Raises:
        konverge.errors.ConfigurationError: It cannot be read.
    """
    try:
        with file.open("rb") as opened:
            return opened.read(max_bytes + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
