"""Replacements of addresses, such as a list of mirrors, so that a shared definition works elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from konverge_resolution._internal.reference import Parameters, Value
from konverge_resolution._internal.source_prefix import SourcePrefix

__all__ = ["SourceMap"]

_ADDRESSES = ("url", "bundle", "repo")
_GIT_SUFFIX = ".git"


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Prefixes and their replacements; the longest matching one applies, once.

    Args:
        rules: Prefix and replacement. A prefix matches only up to a separator, so ``https://a/team`` does not change
            ``https://a/team-b``.
    """

    rules: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, rules: Sequence[tuple[str, str]]) -> SourceMap:
        """Parse rules.

        Raises:
            ValueError: A side is not an address.
        """
        for rule in rules:
            for side in rule:
                SourcePrefix.parse(side if "://" in side else f"oci://{side}")
        return cls(tuple(sorted(rules, key=lambda rule: -len(rule[0]))))

    def rewrite(self, params: Parameters) -> tuple[Parameters, str]:
        """Return the parameters with a replaced address, and the original address; empty when no rule matches."""
        for name in _ADDRESSES:
            address = params.get(name)
            if not isinstance(address, str):
                continue
            for before, after in self.rules:
                if after.startswith(before) and _strip_prefix(address, after) is not None:
                    continue  # a result of this rule: pinned and locked references are rewritten again
                rest = _strip_prefix(address, before)
                if rest is not None:
                    target = after.rstrip("/")
                    rest = "" if rest == _GIT_SUFFIX and target.endswith(_GIT_SUFFIX) else rest
                    changed: dict[str, Value] = {**params, name: target + rest}
                    return changed, address
        return params, ""


def _strip_prefix(address: str, prefix: str) -> str | None:
    """Return the rest after a prefix that ends at a separator; None when it does not match.

    A repository of git is the same with and without ``.git`` at its end.
    """
    prefix = prefix.rstrip("/")
    if prefix == f"{address}{_GIT_SUFFIX}":
        return ""
    rest = address.removeprefix(prefix)
    is_whole = not rest or rest[0] in "/:@?#" or rest == _GIT_SUFFIX
    return rest if rest != address and is_whole else None
