"""The providers of one process, which all its boxes share, with the places of those who call them."""

from __future__ import annotations

from dataclasses import dataclass

from konverge_box.providers.call_runner import CallRunner
from konverge_box.providers.plugin import Provider
from konverge_box.providers.provider_registry import ProviderRegistry

__all__ = ["ProviderLimits", "ProviderPool"]


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """How long a provider may take.

    Args:
        item_seconds: For one call, and for the wait for its turn.
        provider_seconds: For all items of one owner in a pass: after that, no other is begun.
        workers: How many calls of a provider run at once; other owners wait for their turn.
    """

    item_seconds: float = 30.0
    provider_seconds: float = 60.0
    workers: int = 4


class ProviderPool:
    """Providers by name, each with its workers.

    Args:
        registry: Where they come from; None for those of installed packages.
        limits: How long they may take.
    """

    def __init__(self, registry: ProviderRegistry | None = None, limits: ProviderLimits = ProviderLimits()) -> None:
        self._registry = registry if registry is not None else ProviderRegistry.from_entry_points()
        self._attempts: dict[str, CallRunner] = {}
        self.limits = limits

    def get_provider(self, name: str) -> Provider:
        """The provider of that name.

        Raises:
            konverge_box.providers.provider_registry.ProviderNotFoundError: There is none.
        """
        return self._registry.get(name)

    def get_call_runner(self, name: str) -> CallRunner:
        """The workers of that provider."""
        if name not in self._attempts:
            self._attempts[name] = CallRunner(self.limits.workers)
        return self._attempts[name]

    async def close(self) -> None:
        """End what still runs, and close the providers."""
        try:
            for attempts in self._attempts.values():
                await attempts.close()
        finally:
            await self._registry.close()
