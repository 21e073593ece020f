"""The rules of label selectors, as workloads and policies carry them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube.names import label_key_mistakes
from konverge.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge.localcluster.validation.metadata import label_mistakes
from konverge.localcluster.validation.mistakes import Mistake, forbidden, invalid, required

__all__ = ["matches_template", "selector_mistakes"]


def selector_mistakes(selector: Mapping[str, Any] | None, field: str) -> Iterator[Mistake]:
    """What is wrong with a selector; its absence is fine."""
    if selector is None:
        return
    yield from label_mistakes(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{field}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values")
        match operator:
            case "In" | "NotIn":
                if not values:
                    yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            case "Exists" | "DoesNotExist":
                if values:
                    told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield forbidden(f"{at}.values", told)
            case _:
                yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        for detail in label_key_mistakes(expression.get("key", "")):
            yield invalid(f"{at}.key", expression.get("key", ""), detail)


def matches_template(selector: Mapping[str, Any] | None, template: Mapping[str, Any]) -> bool:
    """Tell whether a selector finds the pods made from a template; one that cannot be read counts as fine here."""
    try:
        found = LabelSelector.from_object(selector)
    except SelectorSyntaxError:
        return True
    labels = (template.get("metadata") or {}).get("labels") or {}
    return found is not None and found.matches(labels)
