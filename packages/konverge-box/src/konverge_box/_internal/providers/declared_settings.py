"""The settings of a provider: those of the file and the values of Secrets, checked against the provider's class."""

from __future__ import annotations

from typing import Any

from konverge._internal.kube import ObjectKey
from konverge_box._internal.file import ProviderSettings
from konverge_box._internal.providers.plugin import Provider
from konverge_box._internal.providers.secret_refs import read_secret
from konverge_box._internal.providers.spec_conversion import check_fields, convert_spec, find_missing_fields
from konverge_box._internal.steps import ObjectReader, StepError

__all__ = ["DeclaredSettings"]


class DeclaredSettings:
    """The settings of one provider.

    Args:
        declared: The settings in the file.
        provider: The provider.
        where: Their path in the file.
        used_at: The path of the items that need the provider: it reports missing settings.

    Raises:
        StepError: The settings do not fit the provider's class.
    """

    def __init__(self, declared: ProviderSettings, provider: Provider, where: str, used_at: str) -> None:
        missing = find_missing_fields((*declared.settings, *declared.secret_refs), provider.settings)
        if missing:
            names = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            raise StepError(used_at, f"{names}; add {'it' if len(missing) == 1 else 'them'} to {where}.settings")
        check_fields(declared.settings, provider.settings, f"{where}.settings")
        check_fields(declared.secret_refs, provider.settings, f"{where}.secretRefs")
        for name in declared.settings.keys() & declared.secret_refs.keys():
            raise StepError(
                f"{where}.secretRefs.{name}",
                "expected the field once, found it in settings, too; remove one of the two",
            )
        self._declared = declared
        self._class = provider.settings
        self._where = where
        if not declared.secret_refs:
            convert_spec(declared.settings, self._class, f"{where}.settings")

    async def read_settings(self, namespace: str, reader: ObjectReader) -> Any:
        """Read the settings as an instance of the provider's class.

        Args:
            namespace: The owner's namespace, for references without one.
            reader: Reads the Secrets. Their later changes queue the owner.

        Raises:
            providers.secret_refs.MissingSecretError: A Secret does not exist yet.
            StepError: The values do not fit the class.
        """
        values: dict[str, Any] = dict(self._declared.settings)
        for name, reference in self._declared.secret_refs.items():
            secret = ObjectKey(reference.namespace or namespace, reference.name)
            values[name] = await read_secret(reader, secret, reference.key, f"{self._where}.secretRefs.{name}")
        return convert_spec(values, self._class, f"{self._where}.settings")
