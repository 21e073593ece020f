"""The existing objects of a kind under its new definition: which stay valid, survive, are refused or lose fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from konverge._internal.extras import missing_package
from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.upgrade.findings import ObjectFindings
from konverge.errors import KonvergeError, format_error

__all__ = ["MAX_LISTED_OBJECTS", "ObjectChecker", "ObjectSurvey", "StoredObjectValidator", "build_validator"]

MAX_LISTED_OBJECTS = 20
"""Maximum number of objects with each outcome in a report; the others are only counted."""

_MAX_ERRORS = 5


class _CheckResult(Protocol):
    """The result of `StoredObjectValidator.check` in konverge-cluster."""

    @property
    def object(self) -> Object: ...
    @property
    def dropped(self) -> tuple[str, ...]: ...
    @property
    def errors(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def lasting(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def skipped(self) -> tuple[str, ...]: ...


class StoredObjectValidator(Protocol):
    """The validation of the embedded cluster, which has the rules of the API server."""

    def validates(self, api_version: str) -> bool:
        """Return True if the definition has this version."""

    def check(self, obj: Object) -> Any:
        """Validate an object of one of the versions."""


def build_validator(definition: Object) -> StoredObjectValidator:
    """Return the validation by a definition.

    Raises:
        konverge.errors.ConfigurationError: konverge-cluster is not installed.
    """
    try:
        from konverge_cluster._internal.embedded.validation.stored_objects import StoredObjectValidator
    except ImportError as error:
        raise missing_package("the validation of existing objects", error) from None
    return StoredObjectValidator(definition)


@dataclass(slots=True)
class ObjectSurvey:
    """The results for the objects of one kind.

    Attributes:
        checked: The number of objects.
        outcomes: The number of objects with each outcome.
        listed: The first objects with each outcome.
        skipped: The rules that were not evaluated.
    """

    checked: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    listed: list[ObjectFindings] = field(default_factory=list)
    skipped: dict[str, None] = field(default_factory=dict)

    def add(self, findings: ObjectFindings) -> None:
        """Count an object that does not fit."""
        self.outcomes[findings.outcome] += 1
        if self.outcomes[findings.outcome] <= MAX_LISTED_OBJECTS:
            self.listed.append(findings)


class ObjectChecker:
    """The check of one object after another.

    Args:
        live: The validation by the definition in the cluster.
        new: The validation by the new definition.
        target: The API version in which the new version of the operator reads and writes objects.
        convert: Converts an object to an API version with the author's functions; None without them.
        secrets: The values that no message shows.
    """

    def __init__(
        self,
        live: StoredObjectValidator,
        new: StoredObjectValidator,
        *,
        target: str,
        convert: Callable[[Object, str], Awaitable[Object]] | None,
        secrets: SecretValues,
    ) -> None:
        self._live = live
        self._new = new
        self._target = target
        self._convert = convert
        self._secrets = secrets
        self.survey = ObjectSurvey()

    async def check(self, obj: Object) -> None:
        """Check an object and count it."""
        self.survey.checked += 1
        name = str(ObjectKey.of(obj))
        try:
            converted = await self._to_target(obj)
        except Exception as error:  # noqa: BLE001  # an author's function
            # The cause: the message for the API server leaves out its text, which can contain a value of the object.
            text = self._secrets.hide(format_error(error.__cause__ or error))
            self.survey.add(ObjectFindings(name, "not converted", (" ".join(text.split()),)))
            return
        result: _CheckResult = self._new.check(converted)
        self.survey.skipped.update(dict.fromkeys(result.skipped))
        if result.errors:
            outcome = self._judge(obj, result)
            self.survey.add(ObjectFindings(name, outcome, self._format_errors(result), result.dropped))
        elif result.dropped:
            self.survey.add(ObjectFindings(name, "loses fields", (), result.dropped))

    async def read(self, obj: Object) -> Object | None:
        """Return an object as the new version would read it, without a check; None if it cannot be converted."""
        try:
            converted = await self._to_target(obj)
        except Exception:  # noqa: BLE001  # an author's function; `check` has reported it
            return None
        result: _CheckResult = self._new.check(converted)
        return result.object

    def _judge(self, obj: Object, result: _CheckResult) -> Any:
        if result.lasting:
            before: _CheckResult = self._live.check(obj)
            return "already invalid" if before.lasting and not set(result.lasting) - set(before.lasting) else "refused"
        before = self._live.check(obj)
        return "already invalid" if not set(result.errors) - set(before.errors) else "survives"

    async def _to_target(self, obj: Object) -> Object:
        if obj["apiVersion"] == self._target:
            return obj
        if self._convert is not None:
            return await self._convert(obj, self._target)
        if not self._new.validates(self._target):
            raise KonvergeError(f"the new definition has no version {self._target}")
        return {**obj, "apiVersion": self._target}

    def _format_errors(self, result: _CheckResult) -> tuple[str, ...]:
        texts = [
            self._secrets.hide(message if not field or field == "<nil>" else f"{field}: {message}")
            for field, message in (result.lasting or result.errors)[:_MAX_ERRORS]
        ]
        return tuple(" ".join(text.split()) for text in texts)
