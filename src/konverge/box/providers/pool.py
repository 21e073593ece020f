"""The providers of one process, which all its boxes share, with the places of those who call them."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.box.providers.attempts import Attempts
from konverge.box.providers.plugin import Provider
from konverge.box.providers.registry import ProviderRegistry

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
        self._registry = registry if registry is not None else ProviderRegistry.installed()
        self._attempts: dict[str, Attempts] = {}
        self.limits = limits

    def provider(self, name: str) -> Provider:
        """The provider of that name.

        Raises:
            konverge.box.providers.registry.NoProviderError: There is none.
        """
        return self._registry.get(name)

    def attempts(self, name: str) -> Attempts:
        """The workers of that provider."""
        if name not in self._attempts:
            self._attempts[name] = Attempts(self.limits.workers)
        return self._attempts[name]

    async def close(self) -> None:
        """End what still runs, and close the providers."""
        try:
            for attempts in self._attempts.values():
                await attempts.close()
        finally:
            await self._registry.close()
