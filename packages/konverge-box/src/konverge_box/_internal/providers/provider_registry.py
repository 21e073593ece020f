"""The registry of providers: those of installed packages, by their entry points, or those of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points

from konverge.errors import ConfigurationError
from konverge_box._internal.expressions.values import format_hint
from konverge_box._internal.providers.plugin import Provider

__all__ = ["ENTRY_POINTS", "ProviderNotFoundError", "ProviderRegistry"]

ENTRY_POINTS = "konverge.box.providers"
"""The group of entry points. An entry point has the provider's name, and its object is called without arguments."""


class ProviderNotFoundError(ConfigurationError):
    """An error about a provider that is not installed, or whose requirements are not."""


class ProviderRegistry:
    """The providers by name. Each is created on its first use.

    Args:
        makers: The function that creates each provider.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Provider]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Provider] = {}

    @classmethod
    def from_entry_points(cls) -> ProviderRegistry:
        """Return a registry of all installed packages. A provider is imported on its first use."""
        return cls({point.name: _ProviderLoader(point.load) for point in entry_points(group=ENTRY_POINTS)})

    @classmethod
    def from_providers(cls, providers: Iterable[Provider]) -> ProviderRegistry:
        """Return a registry of exactly these providers."""
        registry = cls({})
        registry._made = {provider.name: provider for provider in providers}
        return registry

    def get(self, name: str) -> Provider:
        """Return the provider of that name, the same each time.

        Raises:
            ProviderNotFoundError: The provider is not installed, or cannot be imported.
        """
        if name not in self._made:
            maker = self._makers.get(name)
            if maker is None:
                raise ProviderNotFoundError(
                    f"provider {name} is not installed{format_hint(name, {*self._makers, *self._made})}: install the "
                    f'package that has an entry point "{name}" in the group "{ENTRY_POINTS}"'
                )
            try:
                self._made[name] = maker()
            except ImportError as error:
                raise ProviderNotFoundError(
                    f"provider {name} cannot be imported ({error}). A provider of konverge requires the extra of its "
                    f"name: pip install 'konverge[{name}]'"
                ) from error
        return self._made[name]

    async def close(self) -> None:
        """Close all created providers, also if one of them fails."""
        made, self._made = list(self._made.values()), {}
        errors: list[Exception] = []
        for provider in made:
            try:
                await provider.close()
            except Exception as error:  # noqa: BLE001  # an error of a plug-in does not affect the others
                errors.append(error)
        if errors:
            raise ExceptionGroup("providers could not be closed", errors)


class _ProviderLoader:
    """A loader that imports the class of a provider when it is called."""

    def __init__(self, load: Callable[[], Callable[[], Provider]]) -> None:
        self._load = load

    def __call__(self) -> Provider:
        return self._load()()
