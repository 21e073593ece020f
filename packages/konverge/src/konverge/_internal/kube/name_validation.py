"""Validation of names, label keys and label values: the rules of the API server, with its messages.

Each function returns the reasons to reject the text; the list is empty if the text is valid. The messages are those of
the API server, so that an error reads the same from konverge and from the server.
"""

from __future__ import annotations

import re

__all__ = [
    "validate_dns_label",
    "validate_dns_subdomain",
    "validate_label_key",
    "validate_label_value",
    "validate_service_name",
]

_LABEL_LIMIT = 63
_SUBDOMAIN_LIMIT = 253

_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED_NAME})?"

_is_dns_label = re.compile(_DNS_LABEL).fullmatch
_is_dns_subdomain = re.compile(_DNS_SUBDOMAIN).fullmatch
_is_dns_1035_label = re.compile(_DNS_1035_LABEL).fullmatch
_is_qualified_name = re.compile(_QUALIFIED_NAME).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch


def _format_pattern_error(sentence: str, pattern: str, *examples: str) -> str:
    example_list = " or ".join(f"'{example}', " for example in examples).rstrip(", ")
    return f"{sentence} (e.g. {example_list}, regex used for validation is '{pattern}')"


def _format_length_error(limit: int, unit: str = "bytes") -> str:
    return f"must be no more than {limit} {unit}"


_DNS_LABEL_FORM = _format_pattern_error(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character",
    _DNS_LABEL,
    "my-name",
    "123-abc",
)
_DNS_SUBDOMAIN_FORM = _format_pattern_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    _DNS_SUBDOMAIN,
    "example.com",
)
_DNS_1035_FORM = _format_pattern_error(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS_1035_LABEL,
    "my-name",
    "abc-123",
)
_NAME_PART_FORM = _format_pattern_error(
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character",
    _QUALIFIED_NAME,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_KEY_FORM = (
    f"a valid label key {_NAME_PART_FORM.removeprefix('name part ')} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_LABEL_VALUE_FORM = _format_pattern_error(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def validate_dns_label(text: str) -> list[str]:
    """Validate a DNS label (RFC 1123), the form of namespace and container names."""
    errors = [_format_length_error(_LABEL_LIMIT, "characters")] if len(text) > _LABEL_LIMIT else []
    if "." in text:
        return [*errors, "must not contain dots"]
    return errors if _is_dns_label(text) else [*errors, _DNS_LABEL_FORM]


def validate_dns_subdomain(text: str) -> list[str]:
    """Validate a DNS subdomain (RFC 1123), the form of most object names."""
    errors = [_format_length_error(_SUBDOMAIN_LIMIT, "characters")] if len(text) > _SUBDOMAIN_LIMIT else []
    return errors if _is_dns_subdomain(text) else [*errors, _DNS_SUBDOMAIN_FORM]


def validate_service_name(text: str) -> list[str]:
    """Validate a DNS label that starts with a letter (RFC 1035), the form of a CustomResourceDefinition's names."""
    errors = [_format_length_error(_LABEL_LIMIT)] if len(text) > _LABEL_LIMIT else []
    return errors if _is_dns_1035_label(text) else [*errors, _DNS_1035_FORM]


def validate_label_key(text: str) -> list[str]:
    """Validate a qualified name, ``[prefix/]name``, the form of label and annotation keys."""
    prefix, slash, name = text.rpartition("/")
    errors: list[str] = []
    if slash:
        if "/" in prefix:
            return [_LABEL_KEY_FORM]
        errors = ["prefix part must be non-empty"] if not prefix else _add_prefix(validate_dns_subdomain(prefix))
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > _LABEL_LIMIT:
        errors.append(f"name part {_format_length_error(_LABEL_LIMIT)}")
    if not _is_qualified_name(name):
        errors.append(_NAME_PART_FORM)
    return errors


def validate_label_value(text: str) -> list[str]:
    """Validate the value of a label."""
    errors = [_format_length_error(_LABEL_LIMIT)] if len(text) > _LABEL_LIMIT else []
    return errors if _is_label_value(text) else [*errors, _LABEL_VALUE_FORM]


def _add_prefix(errors: list[str]) -> list[str]:
    return [f"prefix part {error}" for error in errors]
