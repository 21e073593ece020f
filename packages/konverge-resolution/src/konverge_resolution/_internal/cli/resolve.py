"""``konverge resolve``: get a remote definition as an operator would get it, and lock what it refers to."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from konverge._internal.cli.exit_codes import format_failure
from konverge._internal.cli.main import is_verbose, set_failure_code, verbose_option
from konverge.errors import KonvergeError

if TYPE_CHECKING:
    from konverge_resolution._internal.errors import ResolutionError
    from konverge_resolution._internal.resolver import Resolver

__all__ = ["build_lock_options", "exit_with_reason", "resolve"]

_ARGUMENTS = "konverge_resolution.arguments"
"""Key of the command line in the context of a command."""
_RESOLVER_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_JSON_OPTIONS = ("-ojson", "--output=json")

_NAMES = {"pathInRepo": "path"}
"""Names of options for parameters, where they differ from the name with dashes."""

_PARAMETER = re.compile(r"parameter '([^']+)'")
_SETTING = re.compile(r"setting '([^']+)'")
_AUTHORITIES_SETTING = "setting 'ca-certificates'"
_LOGINS = {
    "bundles": "log in with docker or podman",
    "git": "add a login to a credential helper of git or to ~/.netrc",
    "http": "add a login to ~/.netrc",
}
"""How the user of a command provides a credential that the reference does not name, by resolver."""
_CREDENTIAL = "add the value of a Secret with --credential NAME/KEY=env:VARIABLE or file:PATH"


def build_lock_options() -> list[click.Option]:
    """Return the options that control how references are resolved and locked."""
    path = click.Path(path_type=Path)
    return [
        click.Option(["--lock", "lock_file"], type=path, metavar="FILE",
                     help="Use this lock file, and add missing entries with their references."),
        click.Option(["--update", "is_update"], is_flag=True, help="Update the lock file to the current content."),
        click.Option(["--offline", "is_offline"], is_flag=True,
                     help="Use only the lock file's content directory; open no connection."),
        click.Option(["--verify", "is_verifying"], is_flag=True,
                     help="Fetch all locked content from its source again and compare it with the lock file."),
        click.Option(["--content"], type=path, metavar="FOLDER",
                     help="Content directory (default: the name of the lock file with .d)."),
        click.Option(["--no-cache", "is_uncached"], is_flag=True,
                     help="Fetch also what the cache on disk has, and store nothing there."),
        click.Option(["--policy", "policy_files"], multiple=True, type=path, metavar="FILE.yaml",
                     help="File with ResolutionPolicy objects to apply. Can be repeated."),
        click.Option(["--credential", "credentials"], multiple=True, metavar="NAME/KEY=env:VARIABLE|file:PATH",
                     help="Source of a value that a parameter names as a Secret. Can be repeated."),
        click.Option(["--no-user-credentials", "is_without_user"], is_flag=True,
                     help="Use no credentials, proxies and ssh configuration of this user, only --credential."),
        click.Option(["--setting", "settings"], multiple=True, metavar="KEY=VALUE",
                     help="Setting of the resolver. Can be repeated."),
        click.Option(["--allow-network", "networks"], multiple=True, metavar="CIDR",
                     help="Allow connections to this private network, for example 10.0.0.0/8. Can be repeated."),
        click.Option(["--directory"], type=path, metavar="DIR",
                     help="Local directory for the resolver disk; it reads no other file."),
        click.Option(["--ca-certificates", "certificates"], type=path, metavar="FILE.pem",
                     help="Certificates to trust in addition to those of the system, in PEM."),
        click.Option(["--trusted-root"], type=path, metavar="FILE.json",
                     help="Trusted root for keyless signatures: trusted_root.json of sigstore."),
        click.Option(["-n", "--namespace"], default="default", show_default=True,
                     help="Namespace for policies."),
        click.Option(["--timeout", "seconds"], type=click.FloatRange(0, 86_400, min_open=True), default=60.0,
                     show_default=True, metavar="SECONDS", help="Time limit for the whole command."),
        click.Option(["--kubeconfig", "kubeconfig_file"], type=path,
                     help="Kubeconfig file, for content in a cluster."),
        click.Option(["--context"], help="Context in the kubeconfig (default: its current context)."),
    ]  # fmt: skip


def _build_output_options() -> list[click.Option]:
    return [
        click.Option(["--param", "parameters"], multiple=True, metavar="NAME=VALUE",
                     help="Any other parameter. Can be repeated."),
        click.Option(["--digest"], metavar="sha256:HEX", help="Expected digest of the content."),
        click.Option(["-o", "--output"], type=click.Choice(["content", "json"]), default="content", show_default=True,
                     help="Output format: the content, or a JSON record with the content."),
    ]  # fmt: skip


class _ResolverGroup(click.Group):
    """Group with one command for each resolver; its options come from the parameters.

    With ``-o json``, an invalid command line has a JSON record, too.
    """

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        given = list(args)
        with _print_usage_record(given):
            ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[_ARGUMENTS] = given
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        with _print_usage_record(ctx.meta[_ARGUMENTS]):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        from konverge_resolution._internal.resolvers import DISK, load_resolvers

        return sorted([*(resolver.name for resolver in load_resolvers()), DISK])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from konverge_resolution._internal.resolvers import DISK, load_resolvers

        if cmd_name == DISK:
            from konverge_resolution._internal.resolvers.disk import DiskResolver

            return _build_command(DiskResolver(Path()))
        found = [resolver for resolver in load_resolvers([cmd_name]) if resolver.name == cmd_name]
        return _build_command(found[0]) if found else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from konverge_resolution._internal.concise_references import parse_concise_reference
        from konverge_resolution._internal.errors import ResolutionError
        from konverge_resolution._internal.resolver_registry import ResolverRegistry

        name = args[0]
        if "://" in name:  # a concise reference, correct or not
            try:
                name, params = parse_concise_reference(name)
            except ResolutionError as error:
                raise click.UsageError(error.message, ctx) from None
            # The same command as with options; a parameter in both is an error.
            args = [name, *(f"--param={parameter}={value}" for parameter, value in params.items()), *args[1:]]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            # The same message as in a cluster.
            raise click.UsageError(
                ResolverRegistry().build_unavailable_error(name, self.list_commands(ctx)).message, ctx
            )
        return super().resolve_command(ctx, args)


@click.group(cls=_ResolverGroup, invoke_without_command=True)
@verbose_option
@click.pass_context
def resolve(ctx: click.Context, /, **given: Any) -> None:
    """Fetch a remote definition as an operator does; only the resolver "cluster" needs a cluster.

    "konverge resolve git --url https://example.com/boxes --path box.yaml" prints the file. With --lock FILE, the
    command uses that lock file and adds missing entries. Without a resolver, "konverge resolve --lock FILE" fetches all
    locked content, so that --offline can use it. A URL can replace the resolver and its parameters: "konverge resolve
    git+https://example.com/boxes@main#box.yaml".

    A failure is one line with a reason word, such as NotFound; with -o json also a record on stdout.

    Exit code 0: success; 1: invalid reference, or no such definition; 3: policy or configuration does not allow it; 4:
    failure of the cluster; 6: temporary failure, retry later; 7: the content does not match its digest, its signature
    or the lock file.
    """
    from konverge_resolution._internal.cli.resolve_actions import fetch_all
    from konverge_resolution._internal.cli.resolve_flags import ResolveFlags

    if ctx.invoked_subcommand is not None:
        if any(_is_given(ctx, name) for name in given):
            raise click.UsageError(
                f"options must follow the resolver: konverge resolve {ctx.invoked_subcommand} …", ctx
            )
        return
    with exit_with_reason(ctx):
        flags = ResolveFlags.of(ctx, given)
        if flags.lock_file is None:
            message = "expected a resolver or --lock FILE; konverge resolve --help lists the resolvers"
            raise click.UsageError(message, ctx)
        _run_and_print(fetch_all(flags))


resolve.params += build_lock_options()


@contextmanager
def _print_usage_record(arguments: Sequence[str]) -> Iterator[None]:
    """Print a JSON record for an invalid command line if its options, as far as they can be parsed, select JSON."""
    from konverge_resolution._internal.cli.failure_output import build_usage_record

    try:
        yield
    except click.UsageError as error:
        if _selects_json(arguments):
            resolver = arguments[0] if _RESOLVER_NAME.fullmatch(arguments[0]) else ""  # a URL may contain a password
            _print(build_usage_record(error.format_message(), resolver))
        raise


def _selects_json(arguments: Sequence[str]) -> bool:
    pairs = pairwise([*arguments, ""])
    return any(option in _JSON_OPTIONS or (option in ("-o", "--output") and value == "json") for option, value in pairs)


def _is_given(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _build_command(resolver: Resolver) -> click.Command:
    from konverge_resolution._internal.definition_listing import ListingResolver

    common = _build_common_options(resolver)
    taken = {option.removeprefix("--") for click_option in common for option in click_option.opts}
    options: list[click.Parameter] = []
    names: dict[str, str] = {}
    option_names: dict[str, str] = {}
    for name, parameter in resolver.parameters.items():
        option = _NAMES.get(name, _to_option_name(name))
        if option in taken:
            option_names[name] = f"--{option}" if _is_object_namespace(resolver, name) else f"--param {name}"
            continue
        option_names[name] = f"--{option}"
        variable = f"parameter_{len(names)}"
        names[variable] = name
        default = f"  [default: {parameter.default}]" if parameter.default else ""
        description = parameter.description.replace("`", "")
        spellings = dict.fromkeys((f"--{option}", f"--{name}"))  # also as in references: --pathInRepo
        options.append(click.Option([*spellings, variable], metavar="TEXT", help=f"{description}.{default}"))

    @click.pass_context
    def run_resolver(ctx: click.Context, /, **given: Any) -> None:
        from konverge_resolution._internal.cli.resolve_actions import list_source, resolve_one
        from konverge_resolution._internal.cli.resolve_flags import ResolveFlags

        params = {name: given.pop(variable) for variable, name in names.items()}
        is_listing = given.pop("is_listing", False)
        if is_listing and (given["lock_file"] is not None or given["digest"] is not None):
            raise click.UsageError("--list: a list cannot be locked and has no digest; remove --lock and --digest", ctx)
        json_resolver = resolver.name if given["output"] == "json" else ""
        with exit_with_reason(ctx, option_names, json_resolver=json_resolver):
            flags = ResolveFlags.of(ctx, given, resolver.name, params)
            _run_and_print(list_source(flags) if is_listing else resolve_one(flags))

    about = (type(resolver).__doc__ or "A resolver.").strip().partition("\n")[0]
    if isinstance(resolver, ListingResolver):
        message = "List the definitions of the source in place of fetching one."
        options.append(click.Option(["--list", "is_listing"], is_flag=True, help=message))
    command = click.Command(resolver.name, callback=run_resolver, help=about, params=[*options, *common])
    return verbose_option(command)


def _build_common_options(resolver: Resolver) -> list[click.Option]:
    """Return the options that do not come from parameters of the resolver."""
    options = [*_build_output_options(), *build_lock_options()]
    if not _is_object_namespace(resolver, "namespace"):
        return options
    message = (
        "Namespace of the object, and for policies; --param namespace=NAME sets only the namespace of the object "
        "(default: the namespace of the kubeconfig's context)."
    )
    own = click.Option(["-n", "--namespace"], help=message)
    return [own if option.name == own.name else option for option in options]


def _is_object_namespace(resolver: Resolver, parameter: str) -> bool:
    """Tell whether a parameter has kubectl's meaning of ``-n``: the namespace of an object."""
    return (resolver.name, parameter) == ("cluster", "namespace")


def _to_option_name(name: str) -> str:
    """Convert ``scmType`` to ``scm-type`` and ``gitSSHSecret`` to ``git-ssh-secret``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def _run_and_print(work: Coroutine[Any, Any, bytes]) -> None:
    _print(asyncio.run(work))


def _print(output: bytes) -> None:
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


@contextmanager
def exit_with_reason(
    ctx: click.Context, option_names: Mapping[str, str] | None = None, *, json_resolver: str = ""
) -> Iterator[None]:
    """Exit with the code of the failure's reason, and print the reason and the message in terms of the command line.

    Args:
        ctx: The command.
        option_names: The option for each parameter of the reference; empty without any.
        json_resolver: The resolver for a JSON record of the failure on stdout; empty for no record.
    """
    from konverge_resolution._internal.cli.failure_output import (
        build_failure_record,
        build_unexpected_error,
        find_failure_code,
        find_reason,
    )
    from konverge_resolution._internal.cli.resolve_log import log_to_stderr
    from konverge_resolution._internal.errors import ResolutionError

    try:
        with log_to_stderr(is_verbose=is_verbose(ctx)):
            yield
    except KonvergeError as error:
        translated = error
        if isinstance(error, ResolutionError):
            translated = error.with_message(_translate_message(error, ctx, option_names or {}))
        if json_resolver:
            _print(build_failure_record(translated, json_resolver))
        set_failure_code(ctx, find_failure_code(translated))
        raise ResolutionError(find_reason(error), f"{find_reason(error)}: {format_failure(translated)}") from error
    except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
        raise
    except Exception as error:  # any error has a reason word, an exit code and a record
        failure = build_unexpected_error(error)
        if json_resolver:
            _print(build_failure_record(failure, json_resolver))
        set_failure_code(ctx, find_failure_code(failure))
        raise ResolutionError(failure.reason, f"{failure.reason}: {failure.message}") from error


def _translate_message(error: ResolutionError, ctx: click.Context, option_names: Mapping[str, str]) -> str:
    """Translate an error to the terms of the command line, whose options differ from parameter names."""
    from konverge_resolution._internal.reasons import Reason

    message = error.message.replace(_AUTHORITIES_SETTING, "--ca-certificates FILE.pem")
    if option_names:  # without a resolver no settings can be given
        message = _SETTING.sub(r"--setting \1=…", message)
    if not error.field_path:  # otherwise it is a parameter in a definition
        message = _PARAMETER.sub(lambda found: option_names.get(found[1], found[0]), message)
    if error.reason is Reason.AUTHENTICATION_REQUIRED and not ctx.params.get("credentials"):
        # Logins of the user are sent only to the sources of references that the user gave.
        is_own = not error.field_path and not ctx.params.get("is_without_user")
        if is_own and (login := _LOGINS.get(ctx.command.name or "")):
            message += f"; {login}"
        message += f"; {_CREDENTIAL}" if "--credential" not in message else ""
    return message
