"""A resolver of the tests, and what it needs: it does what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from konverge_resolution import (
    Digest,
    FetchRequest,
    Parameter,
    Parameters,
    Provenance,
    Reason,
    ResolutionError,
    ResolvedContent,
    Setting,
)

BOX = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@dataclass
class FakeResolver:
    """A resolver of the test, with ``url`` and ``version``; versions of digits name one content for ever.

    What it brings is from ``from``, where that is another place, and was redirected to ``to``.
    """

    answer: Callable[[FetchRequest, int], bytes] = lambda fetch, calls: BOX
    latest: str | None = None
    name: str = "shelf"
    parameters: Mapping[str, Parameter] = field(default_factory=lambda: {"url": Parameter("where", required=True)})
    settings: Mapping[str, Setting] = field(
        default_factory=lambda: {"fetch-timeout": Setting("t", "duration", "1m"), "default-cache-mode": Setting("c")}
    )
    calls: list[tuple[str, str]] = field(default_factory=list)
    running: int = 0

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        if "url" not in params:
            raise ResolutionError(Reason.INVALID_PARAMETERS, "parameter 'url': expected an address, found none")
        return {"version": "main", **params}

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        return str(params["url"])

    def is_pinned(self, params: Parameters) -> bool:
        return str(params["version"]).isdecimal()

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        if self.latest is None:
            return None
        self.calls.append(("pin", str(fetch.params["url"])))
        return {**fetch.params, "version": self.latest}

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        self.calls.append((str(fetch.params["version"]), str(fetch.params["url"])))
        self.running += 1
        try:
            seconds = float(str(fetch.params.get("seconds", "0")))
            await fetch.services.clock.sleep(seconds)
        finally:
            self.running -= 1
        data = self.answer(fetch, len(self.calls))
        found = str(fetch.params.get("from", fetch.params["url"]))
        source = Provenance(found, {"sha256": Digest.of(data).hex})
        return ResolvedContent(data, source, found_at=str(fetch.params.get("to", "")))
