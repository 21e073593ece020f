"""Which addresses stand for others, as a list of mirrors has it: so that a shared definition can be used elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from konverge_resolution.policy import SourcePrefix
from konverge_resolution.reference import Parameters, Value

__all__ = ["SourceMap"]

_ADDRESSES = ("url", "bundle", "repo")


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Prefixes and what to put in their place; the longest that fits counts, and once.

    Args:
        rules: From where, to where. A prefix fits where a part of an address ends, so ``https://a/team`` does not
            change ``https://a/team-b``.
    """

    rules: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, rules: Sequence[tuple[str, str]]) -> SourceMap:
        """Read rules.

        Raises:
            ValueError: A side is no address.
        """
        for rule in rules:
            for side in rule:
                SourcePrefix.parse(side if "://" in side else f"oci://{side}")
        return cls(tuple(sorted(rules, key=lambda rule: -len(rule[0]))))

    def rewrite(self, params: Parameters) -> tuple[Parameters, str]:
        """The parameters with their address replaced, and the address that was given; empty when nothing fits."""
        for name in _ADDRESSES:
            address = params.get(name)
            if not isinstance(address, str):
                continue
            for before, after in self.rules:
                if after.startswith(before) and _strip_prefix(address, after) is not None:
                    continue  # made by this rule: what was pinned or locked comes here again
                rest = _strip_prefix(address, before)
                if rest is not None:
                    changed: dict[str, Value] = {**params, name: after.rstrip("/") + rest}
                    return changed, address
        return params, ""


def _strip_prefix(address: str, prefix: str) -> str | None:
    """What follows a prefix that ends where a part of an address ends; None when it does not fit."""
    rest = address.removeprefix(prefix.rstrip("/"))
    return rest if rest != address and (not rest or rest[0] in "/:@?#") else None
