r"""Tests that every resolver must pass: a class to inherit from, and a specimen to fill in.

::

    class TestFolderResolver(ResolverConformance):
        @pytest.fixture
        def specimen(self, tmp_path: Path) -> Iterator[Specimen]:
            (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\n")
            with loopback_services() as services:
                yield Specimen(
                    FolderResolver(),
                    services,
                    settings=...,
                    good={...},
                    missing={...},
                    unreachable=Impossible("a local file is not behind a network"),
                    hanging=Impossible("a local file is read in one step"),
                )

The tests are coroutines for anyio's pytest plugin, which the test module must enable (``pytestmark =
pytest.mark.anyio``). For detailed failures call
``pytest.register_assert_rewrite("konverge_resolution.resolver_conformance")`` in a ``conftest.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from konverge._internal.kube.name_validation import validate_dns_label
from konverge.clock import Clock, SeededEntropy, SystemClock
from konverge_resolution._internal.engine import Engine, EngineOptions, Requester
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.host_services import HostServices
from konverge_resolution._internal.lock_validation import build_entry, check_entry
from konverge_resolution._internal.network import AllowedNetworks
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters, Reference
from konverge_resolution._internal.relative_references import (
    ParentDefinition,
    RelativeResolver,
    build_relative_reference,
)
from konverge_resolution._internal.resolution_plan import CACHE
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest, Parameter, Resolver, Services, Setting
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.source_prefix import SourcePrefix

__all__ = ["Impossible", "ResolverConformance", "Specimen", "loopback_services"]

_CANCEL_SECONDS = 0.3
_END_SECONDS = 2.0
_LOOPBACK = ("127.0.0.0/8", "::1/128")


@contextmanager
def loopback_services(
    *, secrets: Mapping[str, Mapping[str, bytes]] | None = None, certificates: str = "", clock: Clock | None = None
) -> Iterator[Services]:
    """Provide services for the tests of a resolver, built like those of a running process.

    Connections reach this machine and the public internet; there is no cluster. The folders and threads are gone after
    the block.

    Args:
        secrets: The Secrets of the requester's namespace by name.
        certificates: Trusted certificates (PEM) besides those of the system.
        clock: The clock; the system clock when None.

    Raises:
        ValueError: The certificates cannot be parsed.
    """
    machine = HostServices(clock or SystemClock(), certificates=certificates)
    try:
        yield machine.build_services("", AllowedNetworks(_LOOPBACK), secrets=_FakeSecrets(secrets or {}))
    finally:
        machine.close()


class _FakeSecrets:
    """Secrets that a test provides (`konverge_resolution.SecretReader`)."""

    def __init__(self, secrets: Mapping[str, Mapping[str, bytes]]) -> None:
        self._secrets = secrets

    async def read_value(self, name: str, key: str) -> str:
        value = (await self.read_all(name)).get(key)
        if value is None:
            raise self._build_error()
        return value.decode()

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        if name not in self._secrets:
            raise self._build_error()
        return self._secrets[name]

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        return ()

    def _build_error(self) -> ResolutionError:
        return ResolutionError(Reason.AUTHENTICATION_REQUIRED, "the Secret or its key does not exist")


@dataclass(frozen=True, slots=True)
class Impossible:
    """Reason why no parameters cause a situation; its test is skipped with this reason.

    Args:
        reason: Why the situation cannot occur, for example ``a local file is read in one step``.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Specimen:
    """Resolver under test, and facts about its source.

    Args:
        resolver: The resolver.
        services: The services that it may use.
        good: Parameters of an existing definition.
        missing: Parameters without a definition, in a source that responds.
        unreachable: Parameters of a source that refuses connections, or why there are none.
        hanging: Parameters of a source that never finishes its response, or why there are none.
        settings: The configuration, as in a ConfigMap.
        credential: A value of its Secrets; no message may contain it.
        leftovers: Returns resources that a finished fetch must not leave: processes, files, connections.
        namespace: The namespace of the requester.
    """

    resolver: Resolver
    services: Services
    good: Parameters
    missing: Parameters
    unreachable: Parameters | Impossible
    hanging: Parameters | Impossible
    settings: Mapping[str, str] = field(default_factory=dict)
    credential: str = ""
    leftovers: Callable[[], Collection[object]] = tuple
    namespace: str = "web"

    @property
    def selected_settings(self) -> Mapping[str, str]:
        """The settings with their defaults applied."""
        settings, mistakes = parse_settings(self.settings, self.resolver.settings)
        assert not mistakes, mistakes
        return settings.select()

    def build_fetch_request(self, params: Parameters, **more: Any) -> FetchRequest:
        """Return the resolver's input for these parameters."""
        checked = self.resolver.validate(params, self.selected_settings)
        return FetchRequest(
            params=checked,
            settings=self.selected_settings,
            namespace=self.namespace,
            user=f"system:serviceaccount:{self.namespace}:default",
            seconds=30,
            services=self.services,
            **more,
        )

    def build_engine(self, options: EngineOptions | None = None) -> Engine:
        """Return an engine with only this resolver."""
        registry = ResolverRegistry.of([self.resolver], {self.resolver.name: dict(self.settings)})

        def build_services(requester: Requester, admission: PolicyDecision) -> Services:
            return self.services

        clock = self.services.clock
        return Engine(registry, build_services, clock=clock, entropy=SeededEntropy(), options=options)

    async def expect_error(self, params: Parameters) -> ResolutionError:
        """Return the error of a single attempt with these parameters."""
        engine = self.build_engine(EngineOptions(attempts=1))
        with pytest.raises(ResolutionError) as caught:
            await engine.resolve(
                Reference(self.resolver.name, {**params, CACHE: "never"}), Requester(self.namespace), seconds=10
            )
        assert not self.credential or self.credential not in str(caught.value)
        return caught.value


class ResolverConformance:
    """Tests for resolvers; the inheriting class provides a fixture ``specimen``."""

    async def test_name_parameters_and_settings_are_described(self, specimen: Specimen) -> None:
        """The name is a DNS label; all parameters and settings have descriptions."""
        resolver = specimen.resolver
        assert not validate_dns_label(resolver.name)
        for name, parameter in resolver.parameters.items():
            assert isinstance(parameter, Parameter), name
            assert parameter.description, name
            assert not parameter.setting or parameter.setting in resolver.settings, name
        for key, setting in resolver.settings.items():
            assert isinstance(setting, Setting), key
            assert setting.description, key
            assert "." not in key, key
        defaults = {key: setting.default for key, setting in resolver.settings.items() if setting.default}
        _, mistakes = parse_settings(defaults, resolver.settings)
        assert not mistakes

    async def test_parameter_of_another_type_is_refused_by_name(self, specimen: Specimen) -> None:
        """Lists and mappings instead of text are refused before any connection opens."""
        texts = [name for name, value in specimen.good.items() if isinstance(value, str)]
        assert texts
        for name in texts:
            for value in (["a"], {"a": "b"}):
                with pytest.raises(ResolutionError) as caught:
                    specimen.resolver.validate({**specimen.good, name: value}, specimen.selected_settings)
                assert caught.value.reason is Reason.INVALID_PARAMETERS
                assert name in caught.value.message

    async def test_missing_required_parameter_is_named(self, specimen: Specimen) -> None:
        """The error names the missing required parameter."""
        for name, parameter in specimen.resolver.parameters.items():
            if not parameter.required or parameter.default or specimen.selected_settings.get(parameter.setting):
                continue
            params = {key: value for key, value in specimen.good.items() if key != name}
            with pytest.raises(ResolutionError) as caught:
                specimen.resolver.validate(params, specimen.selected_settings)
            assert caught.value.reason is Reason.INVALID_PARAMETERS
            assert name in caught.value.message

    async def test_validated_parameters_stay_valid(self, specimen: Specimen) -> None:
        """Validating the result again changes nothing, so pinned and locked parameters stay valid."""
        checked = specimen.resolver.validate(specimen.good, specimen.selected_settings)
        assert specimen.resolver.validate(checked, specimen.selected_settings) == checked

    async def test_policies_can_name_the_source(self, specimen: Specimen) -> None:
        """The address has no user, query or credential, and policies can use it as a prefix."""
        checked = specimen.resolver.validate(specimen.good, specimen.selected_settings)
        uri = specimen.resolver.source_uri(checked, specimen.selected_settings)
        assert uri == specimen.resolver.source_uri(checked, specimen.selected_settings)
        assert "?" not in uri
        assert not specimen.credential or specimen.credential not in uri
        assert SourcePrefix.parse(uri).matches(uri)

    async def test_existing_content_has_its_provenance(self, specimen: Specimen) -> None:
        """The result has bytes, an address and a digest, and no credential."""
        resolved = await specimen.resolver.resolve(specimen.build_fetch_request(specimen.good))
        assert isinstance(resolved, ResolvedContent)
        assert resolved.data
        assert resolved.source.uri
        assert resolved.source.digest
        message = repr((resolved, resolved.source, dict(resolved.annotations), dict(resolved.pinned)))
        assert not specimen.credential or specimen.credential not in message
        outcome = await specimen.build_engine().resolve(
            Reference(specimen.resolver.name, specimen.good), Requester(specimen.namespace)
        )
        assert outcome.resolved.data == resolved.data

    async def test_content_above_the_limit_is_refused(self, specimen: Specimen) -> None:
        """A limit of one byte less than the content is an error."""
        resolved = await specimen.resolver.resolve(specimen.build_fetch_request(specimen.good))
        with pytest.raises(ResolutionError) as caught:
            await specimen.resolver.resolve(
                specimen.build_fetch_request(specimen.good, max_bytes=len(resolved.data) - 1)
            )
        assert caught.value.reason is Reason.TOO_LARGE

    async def test_pinned_parameters_name_the_same_content(self, specimen: Specimen) -> None:
        """Pinned parameters are valid and return the same bytes; ``pin`` does not change its own result."""
        resolver = specimen.resolver
        resolved = await resolver.resolve(specimen.build_fetch_request(specimen.good))
        pinned = await resolver.pin(specimen.build_fetch_request(specimen.good))
        for params in (resolved.pinned, pinned):
            if params:
                again = await resolver.resolve(specimen.build_fetch_request(params))
                assert (again.data, again.source) == (resolved.data, resolved.source)
        if pinned:
            checked = resolver.validate(pinned, specimen.selected_settings)
            assert resolver.is_pinned(checked)
            assert await resolver.pin(specimen.build_fetch_request(pinned)) in (None, checked)

    async def test_result_can_be_locked(self, specimen: Specimen) -> None:
        """Pinned parameters are declared as versions and match the reference."""
        engine, reference = specimen.build_engine(), Reference(specimen.resolver.name, specimen.good)
        outcome = await engine.resolve(reference, Requester(specimen.namespace))
        entry = build_entry(reference, outcome, engine.registry)
        locked = check_entry(entry, reference, engine.registry)
        again = await engine.resolve(locked.pinned_reference, Requester(specimen.namespace))
        assert (again.resolved.data, again.resolved.source) == (outcome.resolved.data, entry.source)

    async def test_missing_content_is_not_found(self, specimen: Specimen) -> None:
        """``NotFound`` is for content that a responding source does not have, for example after a typing error."""
        assert (await specimen.expect_error(specimen.missing)).reason is Reason.NOT_FOUND

    async def test_unreachable_source_is_not_missing_content(self, specimen: Specimen) -> None:
        """``Unreachable`` is transient: the engine tries again, and another source may be used."""
        params = _get_params_or_skip(specimen.unreachable)
        assert (await specimen.expect_error(params)).reason is Reason.UNREACHABLE

    async def test_hanging_source_ends_at_the_time_limit(self, specimen: Specimen) -> None:
        """A source that never ends takes no longer than the time limit, and leaves nothing."""
        params = _get_params_or_skip(specimen.hanging)
        clock, before = specimen.services.clock, _list_tasks()
        begun = clock.monotonic()
        with pytest.raises(ResolutionError) as caught:
            await specimen.build_engine().resolve(
                Reference(specimen.resolver.name, params), Requester(specimen.namespace), seconds=0.5
            )
        assert caught.value.reason is Reason.TIMED_OUT
        assert clock.monotonic() - begun < 0.5 + _END_SECONDS
        assert not specimen.leftovers()
        await _wait_until_done(before, specimen.services.clock)

    async def test_fetch_cancelled_at_its_start_leaves_nothing(self, specimen: Specimen) -> None:
        """A fetch that is cancelled at once ends, and its processes, files, connections and tasks are gone."""
        await _cancel_fetch(specimen, specimen.good, after_seconds=0)

    async def test_cancelled_fetch_of_a_hanging_source_leaves_nothing(self, specimen: Specimen) -> None:
        """The same while the fetch waits for its source."""
        await _cancel_fetch(specimen, _get_params_or_skip(specimen.hanging), after_seconds=_CANCEL_SECONDS)

    async def test_relative_paths_stay_in_the_source(self, specimen: Specimen) -> None:
        """No relative reference leaves the source; without `RelativeResolver`, every relative reference is refused."""
        resolver = specimen.resolver
        resolved = await resolver.resolve(specimen.build_fetch_request(specimen.good))
        base = resolver.validate(resolved.pinned or specimen.good, specimen.selected_settings)
        uri = resolver.source_uri(base, specimen.selected_settings)
        if not isinstance(resolver, RelativeResolver):
            registry = specimen.build_engine().registry
            with pytest.raises(ResolutionError, match="supports no relative references") as refused:
                build_relative_reference(registry, ParentDefinition(Reference(resolver.name, base), resolved), "other")
            assert refused.value.reason is Reason.INVALID_PARAMETERS
            return
        for path in ("../" * 40 + "x", "/../x", "%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/x", "a\\..\\x", ""):
            with pytest.raises(ResolutionError) as caught:
                resolver.resolve_relative(base, path)
            assert caught.value.reason is Reason.INVALID_PARAMETERS
        sibling = resolver.validate(resolver.resolve_relative(base, "other"), specimen.selected_settings)
        sibling_uri = resolver.source_uri(sibling, specimen.selected_settings)
        assert SourcePrefix.parse(uri).host == SourcePrefix.parse(sibling_uri).host


def _get_params_or_skip(case: Parameters | Impossible) -> Parameters:
    """Return the parameters of a case; skip the test with the author's reason if the case is impossible."""
    if isinstance(case, Impossible):
        pytest.skip(f"impossible for this resolver: {case.reason}")
    return case


async def _cancel_fetch(specimen: Specimen, params: Parameters, *, after_seconds: float) -> None:
    before, clock = _list_tasks(), specimen.services.clock
    task = asyncio.create_task(specimen.resolver.resolve(specimen.build_fetch_request(params)))
    # Every moment is valid: before its first step, or while it connects or waits for the response.
    await clock.sleep(after_seconds)
    task.cancel()
    async with asyncio.timeout(_END_SECONDS):
        await asyncio.wait([task])
    assert task.cancelled() or not after_seconds, "the fetch ended although its source hangs"
    assert not specimen.leftovers()
    await _wait_until_done(before, clock)


def _list_tasks() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if not task.done()}


async def _wait_until_done(before: set[asyncio.Task[Any]], clock: Clock) -> None:
    """Wait until all tasks of a fetch have ended; a server in the same process needs a moment to notice."""
    async with asyncio.timeout(_END_SECONDS):
        while not _list_tasks() <= before:
            await clock.sleep(0.01)
