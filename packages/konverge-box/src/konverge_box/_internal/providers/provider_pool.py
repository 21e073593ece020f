"""The providers of one process, which all its boxes share, with the limits of their calls."""

from __future__ import annotations

from dataclasses import dataclass

from konverge_box._internal.providers.call_runner import CallRunner
from konverge_box._internal.providers.plugin import Provider
from konverge_box._internal.providers.provider_registry import ProviderRegistry

__all__ = ["ProviderLimits", "ProviderPool"]


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """The time limits of a provider.

    Args:
        item_seconds: The limit of one call, and of the wait for a worker.
        provider_seconds: The limit for all items of one owner in a reconcile. After it, no further call starts.
        workers: The maximum number of concurrent calls of a provider. Other owners wait.
    """

    item_seconds: float = 30.0
    provider_seconds: float = 60.0
    workers: int = 4


class ProviderPool:
    """The providers by name, each with its workers.

    Args:
        registry: The registry of the providers (default: those of installed packages).
        limits: The time limits.
    """

    def __init__(self, registry: ProviderRegistry | None = None, limits: ProviderLimits = ProviderLimits()) -> None:
        self._registry = registry if registry is not None else ProviderRegistry.from_entry_points()
        self._attempts: dict[str, CallRunner] = {}
        self.limits = limits

    def get_provider(self, name: str) -> Provider:
        """Return the provider of that name.

        Raises:
            providers.provider_registry.ProviderNotFoundError: The provider is not installed.
        """
        return self._registry.get(name)

    def get_call_runner(self, name: str) -> CallRunner:
        """Return the runner for the calls of that provider."""
        if name not in self._attempts:
            self._attempts[name] = CallRunner(self.limits.workers)
        return self._attempts[name]

    async def close(self) -> None:
        """Cancel the running calls, and close the providers."""
        try:
            for attempts in self._attempts.values():
                await attempts.close()
        finally:
            await self._registry.close()
