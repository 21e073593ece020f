"""The identity of objects, and the paths built from it."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import BadRequestError
from konverge.kube import GroupVersionKind, ObjectKey, RestMapping

CONFIG_MAPS = RestMapping(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)


def test_the_path_of_an_object_and_of_a_collection() -> None:
    assert CONFIG_MAPS.build_path(ObjectKey("default", "web")) == "/api/v1/namespaces/default/configmaps/web"
    assert CONFIG_MAPS.build_path(namespace="default") == "/api/v1/namespaces/default/configmaps"
    assert CONFIG_MAPS.build_path() == "/api/v1/configmaps"


@pytest.mark.parametrize("text", [".", "..", "../secrets/web", "a/b", "a%2fb"])
def test_no_name_leads_to_another_path(text: str) -> None:
    with pytest.raises(BadRequestError, match="cannot be the name of a ConfigMap: it may not"):
        CONFIG_MAPS.build_path(ObjectKey("default", text))
    with pytest.raises(BadRequestError, match="cannot be the namespace: it may not"):
        CONFIG_MAPS.build_path(ObjectKey(text, "web"))


def test_an_object_without_a_name_is_not_its_collection() -> None:
    with pytest.raises(BadRequestError, match="may not be empty"):
        CONFIG_MAPS.build_path(ObjectKey("default", ""))


@pytest.mark.parametrize("metadata", [None, 5, "text", [], {}, {"name": 5, "namespace": ["a"]}])
def test_a_key_is_text_whatever_the_metadata_says(metadata: Any) -> None:
    assert ObjectKey.of({"metadata": metadata}) == ObjectKey("", "")
