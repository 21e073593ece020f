"""Editor of the rules of a Role or ClusterRole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.mutation.editors.editor import ListEditor
from konverge._internal.mutation.field_editing import copy_json

__all__ = ["PolicyRulesEditor"]


class PolicyRulesEditor(ListEditor):
    """Edits the ``rules`` of a role. A rule has no key: its index identifies it."""

    __slots__ = ()

    field = "rules"

    def add_rule(self, rule: Mapping[str, Any]) -> None:
        """Append a rule: ``{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}``."""
        self.raw().append(copy_json(rule))

    def remove_rule_by_index(self, index: int) -> None:
        """Remove the rule at this index, counted from 0; an index without a rule has no effect."""
        rules = self.raw()
        if 0 <= index < len(rules):
            del rules[index]
        self._drop_when_empty()

    def clear(self) -> None:
        """Remove all rules of the role."""
        self.raw().clear()
        self._drop_when_empty()
