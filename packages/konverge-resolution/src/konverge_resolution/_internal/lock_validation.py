"""Validation of lock entries against the references that they lock. Pure.

A lock file is part of pull requests, where it is long and rarely reviewed. So it is trusted only for the version of a
definition and its digest. The resolver, the source and the credential come from the reference itself. An entry with
other values is refused, with the name of the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

import msgspec

from konverge._internal.message_text import to_printable
from konverge_resolution._internal.engine import ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.lock_file import LockEntry, drop_cache_mode
from konverge_resolution._internal.parameter_checks import build_param_error
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters, Reference, Value, iter_texts, redact_source
from konverge_resolution._internal.relative_references import ParentDefinition
from konverge_resolution._internal.remote_caller import wrap_resolver_errors
from konverge_resolution._internal.resolution_plan import CACHE, ENGINE_PARAMETERS
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver import ParameterRole, Resolver
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolver_settings import CONFIG_KEY
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution._internal.url_credentials import find_credential

__all__ = [
    "LockedReference",
    "PinValidator",
    "ProvenanceBuilder",
    "build_entry",
    "check_entry",
    "find_defaults",
    "has_credential",
]

_PINNED = (ParameterRole.VERSION, ParameterRole.CONTENT_DIGEST)
_MAX_TEXT = 200


@runtime_checkable
class PinValidator(Protocol):
    """Resolver with a stricter check of pins: one optional method besides those of `Resolver`.

    Without it a pin must satisfy `Resolver.is_pinned` and have the same `Resolver.source_uri`.
    """

    def find_pin_mismatch(
        self, asked: Parameters, pinned: Parameters, settings: Mapping[str, str]
    ) -> tuple[str, str] | None:
        """Return the parameter of a pin that does not match the reference, and the expected value; None if all match.

        Args:
            asked: The validated parameters of the reference.
            pinned: The same parameters with those of the pin.
            settings: The settings of the resolver.
        """


@runtime_checkable
class ProvenanceBuilder(Protocol):
    """Resolver whose provenance follows from the pin: one optional method besides those of `Resolver`."""

    def build_provenance(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Provenance
    ) -> Provenance:
        """Return the provenance of pinned parameters; keep recorded values that only the source knows.

        Args:
            params: The parameters with those of the pin.
            settings: The settings of the resolver.
            digest: The digest of the content.
            recorded: The provenance in the lock file.
        """


@dataclass(frozen=True, slots=True)
class LockedReference:
    """Reference with the values that a lock file adds; made by `check_entry`.

    Args:
        reference: The reference as it was written.
        pinned_reference: The same with the pin and the digest of the content; its source and its credentials are those
            of the written reference, which policies check.
        entry: The lock entry.
        description: Description of the entry for messages.
        content_digest: The digest of the content in a parameter of the reference; None for none.
    """

    reference: Reference
    pinned_reference: Reference
    entry: LockEntry
    description: str
    content_digest: Digest | None = None

    @property
    def pinned(self) -> Parameters:
        """The pinned parameters without those of the engine; empty for a resolver without pins."""
        if not self.entry.pinned:
            return {}
        return {name: value for name, value in self.pinned_reference.params.items() if name not in ENGINE_PARAMETERS}

    def build_content(self, data: bytes) -> ResolvedContent:
        """Combine stored content with the provenance of the lock file."""
        entry = self.entry
        return ResolvedContent(
            data, entry.source, pinned=self.pinned, found_at=entry.found_at, found_params=entry.found_params
        )

    def check_content(self, data: bytes) -> None:
        """Compare content with the digest of the lock file and those of the reference.

        Raises:
            ResolutionError: ``DigestMismatch``: a digest does not match.
        """
        for digest in (self.pinned_reference.digest, self.reference.digest, self.content_digest):
            if digest is not None and not digest.matches(data):
                _refuse(self.description, "digest", str(digest), str(Digest.of(data, digest.algorithm)))


def has_credential(reference: Reference, registry: ResolverRegistry) -> bool:
    """Tell whether a reference names a credential other than the resolver's default.

    Raises:
        ResolutionError: There is no such resolver, or it has no such settings.
    """
    installed = registry.get(reference.resolver)
    settings = installed.select_settings(reference.params)
    return any(
        value not in ("", settings.get(parameter.setting, ""), parameter.default)
        for name, parameter in installed.resolver.parameters.items()
        if parameter.role is ParameterRole.CREDENTIAL and (value := reference.params.get(name, ""))
    )


def find_defaults(reference: Reference, registry: ResolverRegistry) -> dict[str, Value]:
    """Return the resolver's defaults for missing parameters; none for a reference that the resolver refuses.

    Raises:
        ResolutionError: ``Internal``: the resolver failed in another way.
    """
    try:
        taken, _, _ = _validate_params(reference, registry)
    except ResolutionError as error:
        if error.reason is Reason.INTERNAL:
            raise
        return {}  # the resolution of the reference reports the error
    given = reference.params
    return {name: value for name, value in sorted(taken.items()) if name not in given and value not in ("", [], {})}


def build_entry(reference: Reference, outcome: ResolutionResult, registry: ResolverRegistry) -> LockEntry:
    """Build the lock entry for a resolved reference.

    Args:
        reference: The reference.
        outcome: The result of its resolution.
        registry: The resolvers.

    Raises:
        ResolutionError: ``Internal``: the resolver pins a parameter that it does not declare as a version;
            ``InvalidParams``: the reference uses an alias of a version, or its place redirects elsewhere;
            ``DigestMismatch``: the content does not match.
    """
    taken, resolver, settings = _validate_params(reference, registry)
    settled = ParentDefinition(reference, outcome.resolved).pinned_reference.params if outcome.resolved.pinned else {}
    names = _list_pinned_names(resolver)
    for name, value in settled.items():
        if name not in names and name not in ENGINE_PARAMETERS and taken.get(name) != value:
            message = f"resolver {resolver.name!r} pins parameter {name[:80]!r}, which it does not declare as a version"
            raise ResolutionError(Reason.INTERNAL, message)
    with wrap_resolver_errors(resolver.name):
        was_pinned = resolver.is_pinned(taken)
    for name in sorted(names & settled.keys() & taken.keys()) if was_pinned else ():
        if settled[name] != taken[name]:
            message = (
                f"{_format_value(taken[name])} stands for {_format_value(settled[name])}, "
                "which a lock file requires: use that in the reference"
            )
            raise build_param_error(name, message)
    entry = LockEntry(
        resolver=reference.resolver,
        params=drop_cache_mode(reference.params),
        digest=str(Digest.of(outcome.resolved.data)),
        defaults=find_defaults(reference, registry),
        pinned={name: settled[name] for name in sorted(names) if name in settled},
        source=outcome.resolved.source,
        found_at=outcome.policy_source if outcome.is_redirected else "",
        found_params=dict(outcome.resolved.found_params),
    )
    expected = _build_expected_provenance(resolver, {**taken, **entry.pinned}, settings, entry)
    if expected.uri != entry.source.uri:
        message = (
            f"{_format_value(expected.uri)} leads to {_format_value(entry.source.uri)}, which "
            "a lock file requires: use that address in the reference"
        )
        raise ResolutionError(Reason.INVALID_PARAMETERS, message)
    if entry.found_params:  # keep the entry point of the reference; found_params has the actual one
        source = Provenance(entry.source.uri, entry.source.digest, expected.entry_point)
        entry = msgspec.structs.replace(entry, source=source)
    check_entry(entry, reference, registry)  # ensure that the entry is valid when it is read again
    return entry


def check_entry(
    entry: LockEntry, reference: Reference, registry: ResolverRegistry, *, file: str = ""
) -> LockedReference:
    """Check an entry against the reference that it locks.

    Args:
        entry: The entry.
        reference: The reference, from elsewhere than the lock file.
        registry: The resolvers.
        file: The lock file, for messages.

    Raises:
        ResolutionError: ``DigestMismatch``: the entry does not match; the message has the file, the entry, the field,
            the expected and the actual value. As `Resolver.validate`, where the reference itself is invalid.
    """
    asked, resolver, settings = _validate_params(reference, registry)
    names = _list_pinned_names(resolver)
    with wrap_resolver_errors(resolver.name):
        place = resolver.source_uri(asked, settings)
    about = f"{file or 'the lock file'}: the entry for {_format_value(place)} does not match its reference"
    if entry.resolver != reference.resolver:
        _refuse(about, "resolver", reference.resolver, entry.resolver)
    for kind, values in (("defaults", entry.defaults), ("pinned", entry.pinned)):
        for name, value in values.items():
            # The default of a version may have changed since the entry was locked.
            is_free = name in names and (kind == "pinned" or (name in asked and name not in reference.params))
            expected = reference.params.get(name) if name in ENGINE_PARAMETERS else asked.get(name)
            if not is_free and name != CACHE and value != expected:
                _refuse_difference(about, f"{kind}.{name}", resolver, name, expected, value)
    settled = asked
    if names and (missing := sorted(names - entry.pinned.keys())):
        _refuse(about, f"pinned.{missing[0]}", "the version of the locked content", "none")
    if names:
        settled = {**asked, **{name: entry.pinned[name] for name in names}}
        _check_pin(about, resolver, asked, settled, settings)
    digest, wanted = _parse_digest(entry, about), _find_content_digest(resolver, asked)
    pinned = _find_content_digest(resolver, settled)
    for other in (reference.digest, wanted):
        if other is not None and other.algorithm == digest.algorithm and other != digest:
            _refuse(about, "digest", f"{other} of the reference", entry.digest)
    if pinned is not None and pinned.algorithm == digest.algorithm and pinned != digest:
        _refuse(about, "pinned.digest", entry.digest, str(pinned))
    _check_source(about, resolver, settled, settings, entry)
    _check_found_at(about, entry)
    kept = {name: reference.params[name] for name in ENGINE_PARAMETERS if name in reference.params}
    unpinned = reference.params if reference.unpinned is None else reference.unpinned
    locked = Reference(reference.resolver, {**settled, **kept}, digest, unpinned)
    return LockedReference(reference, locked, entry, about, pinned)


def _validate_params(
    reference: Reference, registry: ResolverRegistry
) -> tuple[Parameters, Resolver, Mapping[str, str]]:
    """Return the validated parameters of a reference, its resolver and the settings."""
    given = dict(drop_cache_mode(reference.params))
    given.pop(CONFIG_KEY, None)
    installed = registry.get(reference.resolver)
    settings = installed.select_settings(reference.params)
    with wrap_resolver_errors(reference.resolver):
        return installed.resolver.validate(given, settings), installed.resolver, settings


def _list_pinned_names(resolver: Resolver) -> frozenset[str]:
    return frozenset(name for name, parameter in resolver.parameters.items() if parameter.role in _PINNED)


def _check_pin(
    about: str, resolver: Resolver, asked: Parameters, settled: Parameters, settings: Mapping[str, str]
) -> None:
    names = sorted(_list_pinned_names(resolver))
    changed = next((name for name in names if settled[name] != asked.get(name)), names[0])
    try:
        with wrap_resolver_errors(resolver.name):
            checked = resolver.validate(settled, settings)
            place, found_place = (resolver.source_uri(each, settings) for each in (asked, checked))
            was_pinned, is_pinned = resolver.is_pinned(asked), resolver.is_pinned(checked)
            mistake = (
                resolver.find_pin_mismatch(asked, checked, settings) if isinstance(resolver, PinValidator) else None
            )
    except ResolutionError as error:
        if error.reason is Reason.INTERNAL:
            raise
        _refuse(about, f"pinned.{changed}", "a version of the reference", "none")
    for name in names:
        if checked.get(name) != settled[name] or (was_pinned and name in asked and settled[name] != asked[name]):
            _refuse_difference(
                about, f"pinned.{name}", resolver, name, (asked if was_pinned else checked).get(name), settled[name]
            )
    if mistake is not None:
        _refuse(about, f"pinned.{mistake[0]}", mistake[1], _format_value(settled[mistake[0]]))
    if not isinstance(resolver, PinValidator):
        if found_place != place:
            _refuse(
                about,
                f"pinned.{changed}",
                f"a version of {_format_value(place)}",
                f"one of {_format_value(found_place)}",
            )
        if not is_pinned:
            _refuse(
                about,
                f"pinned.{changed}",
                "a permanent version such as a commit or a digest",
                _format_value(settled[changed]),
            )


def _find_content_digest(resolver: Resolver, params: Parameters) -> Digest | None:
    for name, parameter in resolver.parameters.items():
        value = params.get(name)
        if parameter.role is ParameterRole.CONTENT_DIGEST and isinstance(value, str) and value:
            return Digest.parse(value)
    return None


def _check_source(
    about: str, resolver: Resolver, settled: Parameters, settings: Mapping[str, str], entry: LockEntry
) -> None:
    found, expected = entry.source, _build_expected_provenance(resolver, settled, settings, entry)
    if found.uri != expected.uri:
        _refuse(about, "source.uri", _format_value(expected.uri), _format_value(found.uri))
    if dict(found.digest) != dict(expected.digest):
        _refuse(about, "source.digest", _format_value(dict(expected.digest)), _format_value(dict(found.digest)))
    if found.entry_point != expected.entry_point:
        _refuse(about, "source.entryPoint", _format_value(expected.entry_point), _format_value(found.entry_point))


def _parse_digest(entry: LockEntry, about: str) -> Digest:
    try:
        return Digest.parse(entry.digest)
    except ValueError:
        _refuse(about, "digest", "sha256: or sha512: and hexadecimal digits", repr(entry.digest[:_MAX_TEXT]))


def _check_found_at(about: str, entry: LockEntry) -> None:
    """Refuse an invalid record of the actual source: messages contain it, and policies check it."""
    found = entry.found_at
    if found and ("://" not in found or redact_source(found) != found):
        _refuse(about, "foundAt", "an address without a user, a query and a fragment", "another text")
    if any(find_credential(text) or not text.isprintable() for text in iter_texts(entry.found_params)):
        _refuse(about, "foundParams", "printable values without a credential", "others")


def _build_expected_provenance(
    resolver: Resolver, settled: Parameters, settings: Mapping[str, str], entry: LockEntry
) -> Provenance:
    found = entry.source
    with wrap_resolver_errors(resolver.name):
        if isinstance(resolver, ProvenanceBuilder):
            return resolver.build_provenance(settled, settings, Digest.parse(entry.digest), found)
        place = resolver.source_uri(settled, settings)
        fits = found.uri == place or SourcePrefix.parse(place).matches(found.uri)
        return Provenance(found.uri if fits else place, found.digest, found.entry_point)


def _refuse_difference(
    about: str, field: str, resolver: Resolver, name: str, expected: Value | None, found: Value | None
) -> NoReturn:
    declared = resolver.parameters.get(name)
    if declared is not None and declared.role is ParameterRole.CREDENTIAL:
        # The user may have written the credential itself there.
        _refuse(about, field, "none" if expected is None else "that of the reference", "another one")
    _refuse(about, field, _format_value(expected), _format_value(found))


def _refuse(about: str, field: str, expected: str, found: str) -> NoReturn:
    message = f"{about}: {_format_value(field)}: expected {expected}, found {found}"
    raise ResolutionError(
        Reason.DIGEST_MISMATCH, f"{message}; find the cause of the change, then lock it again with --update"
    )


def _format_value(value: Value | Mapping[str, str] | None) -> str:
    """Format a value for a message on one line, without the credentials of an address."""
    if value is None or value in ("", [], {}):
        return "none"
    text = (
        value
        if isinstance(value, str)
        else ", ".join(f"{each}:{value[each]}" if isinstance(value, Mapping) else each for each in value)
    )
    if "://" in text or "?" in text:
        text = redact_source(text) or "an address that cannot be printed"
    return to_printable(text, _MAX_TEXT)
