"""Whether an entry of a lock file fits the reference that it locks. Pure.

A lock file travels in pull requests, where it is long and nobody reads it. So it is believed only where nothing else
can say what is right: which version of the definition was taken, and which digest it had. Everything else (which
resolver, which place, whose credential) comes from the reference itself, and an entry that says otherwise is refused
with the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

import msgspec

from konverge.resolution.address_credentials import find_credential
from konverge.resolution.asking import contained
from konverge.resolution.engine import Outcome
from konverge.resolution.errors import ResolutionError
from konverge.resolution.lock import LockEntry, named
from konverge.resolution.parameters import invalid
from konverge.resolution.planning import CACHE, OF_THE_ENGINE
from konverge.resolution.policy import SourcePrefix
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Digest, Parameters, Reference, Value, shown_address, texts_of
from konverge.resolution.registry import Registry
from konverge.resolution.relative import Container
from konverge.resolution.resolver import ParameterRole, Resolver
from konverge.resolution.result import Resolved, Source
from konverge.resolution.settings import CONFIG_KEY

__all__ = [
    "ChecksPin",
    "LockedReference",
    "RecordsSource",
    "check_entry",
    "defaults_of",
    "make_entry",
    "names_credential",
]

_PINNED = (ParameterRole.VERSION, ParameterRole.CONTENT_DIGEST)
_LONGEST_SHOWN = 200


@runtime_checkable
class ChecksPin(Protocol):
    """A resolver that knows more of a pin than that it is one: one optional method beside those of `Resolver`.

    Without it a pin has to satisfy `Resolver.is_pinned`, and to be of the same `Resolver.source_uri`.
    """

    def pin_mistake(self, asked: Parameters, pinned: Parameters, settings: Mapping[str, str]) -> tuple[str, str] | None:
        """What of a pin does not fit what was asked for: the parameter, and what was expected; None for nothing.

        Args:
            asked: The parameters of the reference, checked.
            pinned: The same with those that the pin settles.
            settings: The resolver's configuration.
        """


@runtime_checkable
class RecordsSource(Protocol):
    """A resolver whose record of a source follows from the pin: one optional method beside those of `Resolver`."""

    def recorded_source(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Source
    ) -> Source:
        """The record of what pinned parameters name; what only the source can tell is as it was recorded.

        Args:
            params: The parameters, with those that the pin settles.
            settings: The resolver's configuration.
            digest: That of the content.
            recorded: What a lock file says.
        """


@dataclass(frozen=True, slots=True)
class LockedReference:
    """A reference with what a lock file adds to it; made by `check_entry`.

    Args:
        asked: The reference as it was written.
        settled: The same with the pin and the digest of the content; its place and its credentials are those of the
            written reference, which policies judge.
        entry: The entry.
        about: The entry, for messages.
        content_digest: What a parameter of the reference says that the content is; None for nothing.
    """

    asked: Reference
    settled: Reference
    entry: LockEntry
    about: str
    content_digest: Digest | None = None

    @property
    def pinned(self) -> Parameters:
        """The parameters as a resolver pins them: without those of the engine; empty where it has no pins."""
        if not self.entry.pinned:
            return {}
        return {name: value for name, value in self.settled.params.items() if name not in OF_THE_ENGINE}

    def held(self, data: bytes) -> Resolved:
        """Content that is here already, with what the lock file says of where it was."""
        entry = self.entry
        return Resolved(
            data, entry.source, pinned=self.pinned, found_at=entry.found_at, found_params=entry.found_params
        )

    def check_content(self, data: bytes) -> None:
        """Compare content with the digest of the lock file, and with those of the reference.

        Raises:
            ResolutionError: ``DigestMismatch``: it is not what one of them says.
        """
        for digest in (self.settled.digest, self.asked.digest, self.content_digest):
            if digest is not None and not digest.fits(data):
                _refuse(self.about, "digest", str(digest), str(Digest.of(data, digest.algorithm)))


def names_credential(reference: Reference, registry: Registry) -> bool:
    """Tell whether a reference names a credential, other than that which its resolver would take by itself.

    Raises:
        ResolutionError: There is no such resolver, or it has no such settings.
    """
    installed = registry.get(reference.resolver)
    config_key = reference.params.get(CONFIG_KEY, "")
    settings = installed.settings.chosen(config_key if isinstance(config_key, str) else "")
    return any(
        value not in ("", settings.get(each.setting, ""), each.default)
        for name, each in installed.resolver.parameters.items()
        if each.role is ParameterRole.CREDENTIAL and (value := reference.params.get(name, ""))
    )


def defaults_of(reference: Reference, registry: Registry) -> dict[str, Value]:
    """What a resolver takes for the parameters that a reference does not have; nothing for one that it refuses.

    Raises:
        ResolutionError: ``Internal``: the resolver failed in another way.
    """
    try:
        taken, _, _ = _taken(reference, registry)
    except ResolutionError as error:
        if error.reason is Reason.INTERNAL:
            raise
        return {}  # whoever asks for it is told why
    given = reference.params
    return {name: value for name, value in sorted(taken.items()) if name not in given and value not in ("", [], {})}


def make_entry(reference: Reference, outcome: Outcome, registry: Registry) -> LockEntry:
    """The entry for what a reference has come to.

    Args:
        reference: The reference.
        outcome: What came.
        registry: The resolvers.

    Raises:
        ResolutionError: ``Internal``: the resolver pins what it does not declare as a version; ``InvalidParams``: what
            was asked for is called otherwise, or is elsewhere; ``DigestMismatch``: it is something else.
    """
    taken, resolver, settings = _taken(reference, registry)
    settled = Container(reference, outcome.resolved).settled.params if outcome.resolved.pinned else {}
    names = _pinned_names(resolver)
    for name, value in settled.items():
        if name not in names and name not in OF_THE_ENGINE and taken.get(name) != value:
            told = f"resolver {resolver.name!r} pins parameter {name[:80]!r}, which it does not declare as a version"
            raise ResolutionError(Reason.INTERNAL, told)
    with contained(resolver.name):
        was_pinned = resolver.is_pinned(taken)
    for name in sorted(names & settled.keys() & taken.keys()) if was_pinned else ():
        if settled[name] != taken[name]:
            told = f"{_shown(taken[name])} stands for {_shown(settled[name])}, which a lock file needs: write that"
            raise invalid(name, told)
    entry = LockEntry(
        resolver=reference.resolver,
        params=named(reference.params),
        digest=str(Digest.of(outcome.resolved.data)),
        defaults=defaults_of(reference, registry),
        pinned={name: settled[name] for name in sorted(names) if name in settled},
        source=outcome.resolved.source,
        found_at=outcome.policy_source if outcome.is_redirected else "",
        found_params=dict(outcome.resolved.found_params),
    )
    expected = _expected_source(resolver, {**taken, **entry.pinned}, settings, entry)
    if expected.uri != entry.source.uri:
        told = f"{_shown(expected.uri)} leads to {_shown(entry.source.uri)}, which a lock file needs: name that place"
        raise ResolutionError(Reason.INVALID_PARAMETERS, told)
    if entry.found_params:  # as the reference says it: what it led to stands beside
        source = Source(entry.source.uri, entry.source.digest, expected.entry_point)
        entry = msgspec.structs.replace(entry, source=source)
    check_entry(entry, reference, registry)  # what is written can be read again
    return entry


def check_entry(entry: LockEntry, reference: Reference, registry: Registry, *, file: str = "") -> LockedReference:
    """Check an entry against the reference that it locks.

    Args:
        entry: The entry.
        reference: The reference, from elsewhere than the lock file.
        registry: The resolvers.
        file: The lock file, for messages.

    Raises:
        ResolutionError: ``DigestMismatch``: it does not fit; the message has the file, the entry, the field, what was
            expected and what was found. As `Resolver.validate`, where the reference itself is wrong.
    """
    asked, resolver, settings = _taken(reference, registry)
    names = _pinned_names(resolver)
    with contained(resolver.name):
        place = resolver.source_uri(asked, settings)
    about = f"{file or 'the lock file'}: the entry for {_shown(place)} does not fit its reference"
    if entry.resolver != reference.resolver:
        _refuse(about, "resolver", reference.resolver, entry.resolver)
    for kind, values in (("defaults", entry.defaults), ("pinned", entry.pinned)):
        for name, value in values.items():
            # A version that nobody has written may have been another default when it was locked.
            is_free = name in names and (kind == "pinned" or (name in asked and name not in reference.params))
            expected = reference.params.get(name) if name in OF_THE_ENGINE else asked.get(name)
            if not is_free and name != CACHE and value != expected:
                _differs(about, f"{kind}.{name}", resolver, name, expected, value)
    settled = asked
    if names and (missing := sorted(names - entry.pinned.keys())):
        _refuse(about, f"pinned.{missing[0]}", "what the reference came to", "none")
    if names:
        settled = {**asked, **{name: entry.pinned[name] for name in names}}
        _check_pin(about, resolver, asked, settled, settings)
    digest, wanted = _digest_of(entry, about), _content_digest(resolver, asked)
    pinned = _content_digest(resolver, settled)
    for other in (reference.digest, wanted):
        if other is not None and other.algorithm == digest.algorithm and other != digest:
            _refuse(about, "digest", f"{other}, for which the reference asks", entry.digest)
    if pinned is not None and pinned.algorithm == digest.algorithm and pinned != digest:
        _refuse(about, "pinned.digest", entry.digest, str(pinned))
    _check_source(about, resolver, settled, settings, entry)
    _check_found(about, entry)
    kept = {name: reference.params[name] for name in OF_THE_ENGINE if name in reference.params}
    unpinned = reference.params if reference.unpinned is None else reference.unpinned
    locked = Reference(reference.resolver, {**settled, **kept}, digest, unpinned)
    return LockedReference(reference, locked, entry, about, pinned)


def _taken(reference: Reference, registry: Registry) -> tuple[Parameters, Resolver, Mapping[str, str]]:
    """The parameters of a reference as its resolver takes them, the resolver and its settings."""
    given = dict(named(reference.params))
    config_key = given.pop(CONFIG_KEY, "")
    installed = registry.get(reference.resolver)
    settings = installed.settings.chosen(config_key if isinstance(config_key, str) else "")
    with contained(reference.resolver):
        return installed.resolver.validate(given, settings), installed.resolver, settings


def _pinned_names(resolver: Resolver) -> frozenset[str]:
    return frozenset(name for name, each in resolver.parameters.items() if each.role in _PINNED)


def _check_pin(
    about: str, resolver: Resolver, asked: Parameters, settled: Parameters, settings: Mapping[str, str]
) -> None:
    names = sorted(_pinned_names(resolver))
    changed = next((name for name in names if settled[name] != asked.get(name)), names[0])
    try:
        with contained(resolver.name):
            checked = resolver.validate(settled, settings)
            place, found_place = (resolver.source_uri(each, settings) for each in (asked, checked))
            was_pinned, is_pinned = resolver.is_pinned(asked), resolver.is_pinned(checked)
            mistake = resolver.pin_mistake(asked, checked, settings) if isinstance(resolver, ChecksPin) else None
    except ResolutionError as error:
        if error.reason is Reason.INTERNAL:
            raise
        _refuse(about, f"pinned.{changed}", "a version of what is asked for", "none")
    for name in names:
        if checked.get(name) != settled[name] or (was_pinned and name in asked and settled[name] != asked[name]):
            _differs(
                about, f"pinned.{name}", resolver, name, (asked if was_pinned else checked).get(name), settled[name]
            )
    if mistake is not None:
        _refuse(about, f"pinned.{mistake[0]}", mistake[1], _shown(settled[mistake[0]]))
    if not isinstance(resolver, ChecksPin):
        if found_place != place:
            _refuse(about, f"pinned.{changed}", f"a version of {_shown(place)}", f"one of {_shown(found_place)}")
        if not is_pinned:
            _refuse(about, f"pinned.{changed}", "a name that stays, as a commit or a digest", _shown(settled[changed]))


def _content_digest(resolver: Resolver, params: Parameters) -> Digest | None:
    for name, each in resolver.parameters.items():
        value = params.get(name)
        if each.role is ParameterRole.CONTENT_DIGEST and isinstance(value, str) and value:
            return Digest.parse(value)
    return None


def _check_source(
    about: str, resolver: Resolver, settled: Parameters, settings: Mapping[str, str], entry: LockEntry
) -> None:
    found, expected = entry.source, _expected_source(resolver, settled, settings, entry)
    if found.uri != expected.uri:
        _refuse(about, "source.uri", _shown(expected.uri), _shown(found.uri))
    if dict(found.digest) != dict(expected.digest):
        _refuse(about, "source.digest", _shown(dict(expected.digest)), _shown(dict(found.digest)))
    if found.entry_point != expected.entry_point:
        _refuse(about, "source.entryPoint", _shown(expected.entry_point), _shown(found.entry_point))


def _digest_of(entry: LockEntry, about: str) -> Digest:
    try:
        return Digest.parse(entry.digest)
    except ValueError:
        _refuse(about, "digest", "sha256: or sha512: and hexadecimal digits", repr(entry.digest[:_LONGEST_SHOWN]))


def _check_found(about: str, entry: LockEntry) -> None:
    """Refuse what is no record of a place: it is shown, and policies judge it."""
    found = entry.found_at
    if found and ("://" not in found or shown_address(found) != found):
        _refuse(about, "foundAt", "an address without a user, a query and a fragment", "another text")
    if any(find_credential(text) or not text.isprintable() for text in texts_of(entry.found_params)):
        _refuse(about, "foundParams", "printable values without a credential", "others")


def _expected_source(resolver: Resolver, settled: Parameters, settings: Mapping[str, str], entry: LockEntry) -> Source:
    found = entry.source
    with contained(resolver.name):
        if isinstance(resolver, RecordsSource):
            return resolver.recorded_source(settled, settings, Digest.parse(entry.digest), found)
        place = resolver.source_uri(settled, settings)
        fits = found.uri == place or SourcePrefix.parse(place).covers(found.uri)
        return Source(found.uri if fits else place, found.digest, found.entry_point)


def _differs(
    about: str, field: str, resolver: Resolver, name: str, expected: Value | None, found: Value | None
) -> NoReturn:
    declared = resolver.parameters.get(name)
    if declared is not None and declared.role is ParameterRole.CREDENTIAL:
        # Who takes the parameter for the credential itself has written that there.
        _refuse(about, field, "none" if expected is None else "the one of the reference", "another one")
    _refuse(about, field, _shown(expected), _shown(found))


def _refuse(about: str, field: str, expected: str, found: str) -> NoReturn:
    told = f"{about}: {_shown(field)}: expected {expected}, found {found}"
    raise ResolutionError(
        Reason.DIGEST_MISMATCH, f"{told}; find out who has changed it, and lock it again with --update"
    )


def _shown(value: Value | Mapping[str, str] | None) -> str:
    """A value for a message: without what an address may have as a credential, and on one line."""
    if value is None or value in ("", [], {}):
        return "none"
    text = (
        value
        if isinstance(value, str)
        else ", ".join(f"{each}:{value[each]}" if isinstance(value, Mapping) else each for each in value)
    )
    if "://" in text or "?" in text:
        text = shown_address(text) or "an address that cannot be shown"
    text = text[:_LONGEST_SHOWN]
    return text if text.isprintable() else repr(text)
