"""Redaction of a server's texts about a Secret, or about an object that contains a value of one.

An API server quotes the values that it rejects or warns about: in the messages of admission policies and webhooks, in
the causes of an invalid object, in the errors of a strict decoder or a typed apply. So konverge withholds its free
text. It shows only texts that contain no value: whole sentences of the server itself, the policy or webhook that
rejects, the fields, and the error types of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from konverge._internal.kube.secret_redaction import holds_secret
from konverge._internal.kube.secret_values import SecretValues
from konverge.errors import ApiError, Cause

__all__ = [
    "IMMUTABILITY_PHRASES",
    "hide_values",
    "hide_values_in_text",
    "is_secret_path",
    "is_withholding",
    "iter_texts",
    "withhold_server_texts",
    "withhold_text",
    "withhold_warning",
]

_ADVICE = "it may contain the value of a Secret; run the request with kubectl to see it"

IMMUTABILITY_PHRASES = (
    "immutable",  # most: "field is immutable", "spec is immutable after creation except ..."
    "may not change once set",  # Service spec.clusterIPs
    "may not be unset",  # the same, if it is removed
    "cannot change roleref",  # bindings
    "updates to statefulset spec for fields other than",
    "pod updates may not change fields other than",
    "updates to persistentvolume source",
)
"""The phrases of servers, in lower case, for a field that cannot change; each validation has its own."""

_NAME = r"[\w.:@/-]{1,253}"
_ITEMS = r"[\w./-]+=\w+(?:,[\w./-]+=\w+)*"
_QUOTA = rf"exceeded quota: {_NAME}, requested: {_ITEMS}, used: {_ITEMS}, limited: {_ITEMS}"
# Whole messages of the API server itself. Their variable parts are names.
_SENTENCES = tuple(
    re.compile(pattern)
    for pattern in (
        rf'[\w.]+ "{_NAME}" (?:not found|already exists)',
        rf'[\w.]+(?: "{_NAME}")? is forbidden: User "{_NAME}" cannot \w+ resource "[\w./]+" in API group "[\w.-]*" '
        rf'(?:in the namespace "{_NAME}"|at the cluster scope)',
        rf'[\w.]+ "{_NAME}" is forbidden: unable to create new content in namespace {_NAME} because it is being '
        "terminated",
        rf'[\w.]+ "{_NAME}" is forbidden: {_QUOTA}',
        rf'Operation cannot be fulfilled on [\w.]+ "{_NAME}": the object has been modified; please apply your changes '
        "to the latest version and try again",
        rf'Operation cannot be fulfilled on [\w.]+ "{_NAME}": the UID in the precondition \({_NAME}\) does not match '
        rf"the UID in record \({_NAME}\)\. The object might have been deleted and then recreated",
        rf"Precondition failed: UID in precondition: {_NAME}, UID in object meta: (?:{_NAME})?",
        r"the server could not find the requested resource",
        r"the server is currently unable to handle the request",
        r"the server was unable to return a response in the time allotted, but may still be processing the request",
        r"the server answered with HTTP status \d{3}",
        r"Timeout: request did not complete within requested timeout - context deadline exceeded",
        r"Too many requests, please try again later\.",
        r"storage is \(re\)initializing",
        r"etcdserver: (?:leader changed|no leader|request timed out|too many requests)",
        r"too old resource version: \d+ \(\d+\)",
        r"The resourceVersion for the provided (?:watch|list) is too old\.",
        r"Unauthorized",
    )
)
# The policy or webhook that rejects, with the name of its configuration.
_REFUSERS = tuple(
    re.compile(pattern)
    for pattern in (
        rf'admission webhook "{_NAME}" (?=denied the request)',
        rf'(?<=failed calling )webhook "{_NAME}"',
        rf"(?:Validating|Mutating)AdmissionPolicy '{_NAME}' with binding '{_NAME}'",
    )
)
_CAUSE_TYPES = re.compile(
    r"^(Invalid value|Required value|Unsupported value|Duplicate value|Not found|Forbidden|Too long|Too many|"
    r"Internal error|Too few)(?=$|:)"
)
_CAUSE_SENTENCES = re.compile(rf'^conflict with "{_NAME}"(?: with subresource "\w+")?(?: using [\w./-]+)?')

_REASON_NAMES = """
    AlreadyExists BadRequest Conflict Expired Forbidden Gone InternalError Invalid MethodNotAllowed NotAcceptable
    NotFound RequestEntityTooLarge ServerTimeout ServiceUnavailable StorageReadError Timeout TooManyRequests
    Unauthorized Unknown UnsupportedMediaType FieldManagerConflict FieldValueDuplicate FieldValueForbidden
    FieldValueInvalid FieldValueNotFound FieldValueNotSupported FieldValueRequired FieldValueTooFew
    FieldValueTooLong FieldValueTooMany FieldValueTypeInvalid NamespaceTerminating ResourceVersionTooLarge
    UnexpectedServerResponse
"""
_REASONS = frozenset(_REASON_NAMES.split())
_FIELD = re.compile(r"[\w.\[\]/~:*-]{1,253}")
_FIELD_PARTS = re.compile(r"[^\[\]./]+")
# Fields that an error may name although the object does not have them, because they are required.
_FIELD_NAMES = """
    annotations data finalizers generateName immutable kind labels metadata name namespace ownerReferences
    resourceVersion spec status stringData type uid tls.crt tls.key crt key tls .dockerconfigjson dockerconfigjson
    .dockercfg dockercfg ssh-privatekey
"""
_FIELDS = frozenset(_FIELD_NAMES.split())
_DETAILS = frozenset({"causes", "field", "group", "kind", "message", "name", "reason", "retryAfterSeconds", "uid"})

_withholding: ContextVar[bool] = ContextVar("konverge_withholds_server_texts", default=False)


@contextmanager
def withhold_server_texts() -> Iterator[None]:
    """Withhold the server's texts for requests within the block.

    Use it for an object of another kind that contains a value of a Secret. Requests about a Secret do not need it.
    """
    token = _withholding.set(True)
    try:
        yield
    finally:
        _withholding.reset(token)


def is_withholding() -> bool:
    """Return True if the running task is within `withhold_server_texts`."""
    return _withholding.get()


def is_secret_path(path: str) -> bool:
    """Return True if a path of the API, without the prefix of the server, is for one or more Secrets."""
    parts = path.split("/")
    resource = parts[5:6] if parts[3:4] == ["namespaces"] else parts[3:4]
    return parts[1:3] == ["api", "v1"] and resource == ["secrets"]


def withhold_text(error: ApiError, *, sent: Any = None, path: str = "", values: SecretValues | None = None) -> ApiError:
    """Return the same error without the server's free text.

    Args:
        error: The error of the server; an error without free text is returned unchanged.
        sent: The body of the request: the names of its fields are not secret.
        path: The path of the request: the names in it are not secret.
        values: Values to hide in any case.
    """
    if error.is_withheld:
        return error
    filter_ = _TextFilter(sent, path, values)
    causes = [filter_.filter_cause(cause) for cause in error.causes]
    reason = error.reason if error.reason in _REASONS else error.default_reason
    identity = {name: str(error.details.get(name) or "") for name in ("name", "kind", "group")}
    details: dict[str, Any] = {name: text for name, text in identity.items() if text in filter_.public}
    if causes:
        details["causes"] = causes
    sentence = next((match[0] for pattern in _SENTENCES if (match := pattern.match(error.message))), "")
    if sentence and filter_.is_harmless(sentence) and error.message[len(sentence) :][:1] in ("", ":"):
        message = sentence
    else:
        problems = ", ".join(dict.fromkeys(filter(None, map(_describe_cause, causes))))
        refuser = filter_.find_refuser(error.message)
        message = (
            f"the server rejected the request ({error.code} {reason}{f': {problems}' if problems else ''})"
            f"{f', because of {refuser}' if refuser else ''}. Its message is withheld: {_ADVICE}"
        )
    withheld = _rebuild_error(error, message, reason, details)
    withheld.is_withheld = True
    return withheld


def withhold_warning(text: str, *, sent: Any = None, path: str = "", values: SecretValues | None = None) -> str:
    """Return the part of a server's warning that is safe to show; the arguments are those of `withhold_text`."""
    refuser = _TextFilter(sent, path, values).find_refuser(text)
    return f"a message{f' because of {refuser}' if refuser else ''}, which is withheld: {_ADVICE}"


def hide_values(error: ApiError, values: SecretValues, *, sent: Any = None, path: str = "") -> ApiError:
    """Return the same error without known values of Secrets; the arguments are those of `withhold_text`."""
    if error.is_withheld:
        return error
    filter_ = _TextFilter(sent, path, values)

    def hide(value: Any) -> Any:
        if isinstance(value, str):
            return value if value in _REASONS else values.hide(value, public=filter_.public)
        if isinstance(value, Mapping):
            return {key if key in _DETAILS else hide(key): hide(item) for key, item in value.items()}
        return [hide(item) for item in value] if isinstance(value, list) else value

    message, reason, details = hide(error.message), hide(error.reason), hide(error.details)
    if error.causes:
        details["causes"] = [_hide_in_cause(cause, hide, filter_) for cause in error.causes]
    if (message, reason, details) == (error.message, error.reason, error.details):
        return error
    return _rebuild_error(error, message, reason, details)


def hide_values_in_text(text: str, values: SecretValues, *, sent: Any = None, path: str = "") -> str:
    """Return a server's text without known values of Secrets; the arguments are those of `withhold_text`."""
    return values.hide(text, public=_list_public_names(sent, path))


def _rebuild_error(error: ApiError, message: str, reason: str, details: Mapping[str, Any]) -> ApiError:
    rebuilt = type(error)(
        message, reason=reason, code=error.code, details=details, retry_after_seconds=error.retry_after_seconds
    )
    rebuilt.request = error.request
    return rebuilt


def _hide_in_cause(cause: Cause, hide: Callable[[str], str], filter_: _TextFilter) -> dict[str, str]:
    """Hide known values in the cause, but keep the phrases that the engine reads, even if a Secret contains them."""
    filtered = filter_.filter_cause(cause)
    message = hide(cause.message)
    if _find_immutability_phrases(message) != _find_immutability_phrases(cause.message):
        message = filtered["message"]
    return {"reason": hide(cause.reason), "message": message, "field": filtered["field"] or hide(cause.field)}


def _find_immutability_phrases(message: str) -> list[str]:
    return [phrase for phrase in IMMUTABILITY_PHRASES if phrase in message.lower()]


class _TextFilter:
    """A filter for the texts of one response, which distinguishes values from names."""

    def __init__(self, sent: Any, path: str, values: SecretValues | None) -> None:
        self.public = _list_public_names(sent, path)
        self._keys = set(_iter_keys(sent)) | _FIELDS
        self._values = [] if values is None else [values]
        own = SecretValues()
        if holds_secret(sent):
            own.add(sent)
        for text in iter_texts(sent):
            own.add_text(text)
        self._values.append(own)

    def is_harmless(self, text: str) -> bool:
        """Return True if a text contains no known value."""
        return all(values.hide(text, public=self.public) == text for values in self._values)

    def find_refuser(self, text: str) -> str:
        """Return the policy or webhook that rejects or warns, if the text names it."""
        refuser = next((match[0].strip() for pattern in _REFUSERS if (match := pattern.search(text))), "")
        return refuser if self.is_harmless(refuser) else ""

    def filter_cause(self, cause: Cause) -> dict[str, str]:
        """Return a cause in the form of a Kubernetes Status, without texts that may be values."""
        error_type, sentence = _CAUSE_TYPES.match(cause.message), _CAUSE_SENTENCES.match(cause.message)
        phrases = [error_type[0]] if error_type else []
        phrases += [sentence[0]] if sentence and self.is_harmless(sentence[0]) else []
        # These phrases come from a constant list, not from the server: they are safe even if a Secret contains them.
        immutable = _find_immutability_phrases(cause.message)
        phrases += ["field is immutable" if phrase == "immutable" else phrase for phrase in immutable]
        return {
            "reason": cause.reason if cause.reason in _REASONS else "",
            "message": ": ".join(phrases),
            "field": cause.field if self._is_field(cause.field) else "",
        }

    def _is_field(self, field: str) -> bool:
        """Return True if the field is a path of names in the object, or of names of Kubernetes."""
        if not _FIELD.fullmatch(field):
            return False
        names = _FIELD_PARTS.findall(field)
        inner = set(re.findall(r"\[([^\[\]]+)\]", field))  # data[tls.crt]
        unknown = [name for name in names if name not in self._keys and not name.isdigit()]
        unknown = [name for name in unknown if not any(name in key and key in self._keys for key in inner)]
        return not unknown or self.is_harmless(" ".join([field, *unknown]))


def _describe_cause(cause: Mapping[str, str]) -> str:
    return ": ".join(filter(None, (cause["field"], cause["message"])))


def _list_public_names(sent: Any, path: str) -> Collection[str]:
    """List the names that are not secret: the parts of the path and the identity of the object."""
    metadata = sent.get("metadata") if isinstance(sent, Mapping) else None
    metadata = metadata if isinstance(metadata, Mapping) else {}
    names = [metadata.get(name) for name in ("name", "namespace", "generateName")]
    if isinstance(sent, Mapping):
        names += [sent.get("kind"), sent.get("apiVersion")]
    return {"namespaces", *filter(None, path.split("/")), *(name for name in names if isinstance(name, str) and name)}


def _iter_keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _iter_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _iter_keys(item)
            if isinstance(item, Mapping) and {"op", "path"} <= item.keys():  # of a JSON patch
                yield from str(item["path"]).split("/")


def iter_texts(value: Any) -> Iterator[str]:
    """Iterate over the texts of a request body, without the identity and the metadata, which every request has."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in ("metadata", "apiVersion", "kind", "op", "path"):
                yield from iter_texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from iter_texts(item)
    elif isinstance(value, str):
        yield value
