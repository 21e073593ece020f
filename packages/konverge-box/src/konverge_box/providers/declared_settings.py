"""How a provider is reached: what the file says of it, with the values of Secrets, checked against its class."""

from __future__ import annotations

from typing import Any

from konverge.kube import ObjectKey
from konverge_box.file import ProviderSettings
from konverge_box.providers.plugin import Provider
from konverge_box.providers.secret_refs import read_secret
from konverge_box.providers.spec_conversion import check_fields, convert_spec
from konverge_box.steps import ObjectReader, StepError

__all__ = ["DeclaredSettings"]


class DeclaredSettings:
    """The settings of one provider.

    Args:
        declared: What the file has.
        provider: Whose they are.
        where: Their path in the file.

    Raises:
        StepError: They do not fit.
    """

    def __init__(self, declared: ProviderSettings, provider: Provider, where: str) -> None:
        check_fields(declared.settings, provider.settings, f"{where}.settings")
        check_fields(declared.secret_refs, provider.settings, f"{where}.secretRefs")
        for name in declared.settings.keys() & declared.secret_refs.keys():
            raise StepError(f"{where}.secretRefs.{name}", "is one of settings, too; expected it once")
        self._declared = declared
        self._class = provider.settings
        self._where = where
        if not declared.secret_refs:
            convert_spec(declared.settings, self._class, f"{where}.settings")

    async def read_settings(self, namespace: str, reader: ObjectReader) -> Any:
        """An instance of the provider's class for them.

        Args:
            namespace: The owner's, for references without one.
            reader: Reads the Secrets, so that a change of them wakes the owner.

        Raises:
            konverge_box.providers.secret_refs.MissingSecretError: A Secret is not there yet.
            StepError: The values do not fit.
        """
        values: dict[str, Any] = dict(self._declared.settings)
        for name, reference in self._declared.secret_refs.items():
            secret = ObjectKey(reference.namespace or namespace, reference.name)
            values[name] = await read_secret(reader, secret, reference.key, f"{self._where}.secretRefs.{name}")
        return convert_spec(values, self._class, f"{self._where}.settings")
