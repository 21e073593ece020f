"""Which providers there are: those of installed packages, found by their entry points, or those that a test names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points

from konverge.errors import ConfigurationError
from konverge_box.expressions.values import format_hint
from konverge_box.providers.plugin import Provider

__all__ = ["ENTRY_POINTS", "ProviderNotFoundError", "ProviderRegistry"]

ENTRY_POINTS = "konverge.box.providers"
"""The group of entry points; the name of one is the provider's, and what it loads is called without arguments."""


class ProviderNotFoundError(ConfigurationError):
    """There is no provider of that name, or what it needs is not installed."""


class ProviderRegistry:
    """Providers by their names, each made when it is first asked for.

    Args:
        makers: What makes each.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Provider]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Provider] = {}

    @classmethod
    def from_entry_points(cls) -> ProviderRegistry:
        """Those of all installed packages; none of them is imported before it is asked for."""
        return cls({found.name: _ProviderLoader(found.load) for found in entry_points(group=ENTRY_POINTS)})

    @classmethod
    def from_providers(cls, providers: Iterable[Provider]) -> ProviderRegistry:
        """These and no others."""
        registry = cls({})
        registry._made = {provider.name: provider for provider in providers}
        return registry

    def get(self, name: str) -> Provider:
        """The provider of that name, the same each time.

        Raises:
            ProviderNotFoundError: There is none, or it cannot be imported.
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
                    f"provider {name} cannot be imported ({error}). Those of konverge need the extra of their name: "
                    f"pip install 'konverge[{name}]'"
                ) from error
        return self._made[name]

    async def close(self) -> None:
        """Close all that were made; an error of one keeps none of the others."""
        made, self._made = list(self._made.values()), {}
        errors: list[Exception] = []
        for provider in made:
            try:
                await provider.close()
            except Exception as error:  # noqa: BLE001  # a plug-in's code: the others are to be closed
                errors.append(error)
        if errors:
            raise ExceptionGroup("providers could not be closed", errors)


class _ProviderLoader:
    """Imports a provider's class when it is called."""

    def __init__(self, load: Callable[[], Callable[[], Provider]]) -> None:
        self._load = load

    def __call__(self) -> Provider:
        return self._load()()
