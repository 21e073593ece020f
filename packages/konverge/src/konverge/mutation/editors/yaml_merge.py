"""Merging one YAML document into another, by their nodes: a scalar that nobody changes keeps its spelling."""

from __future__ import annotations

import yaml

from konverge.kube.yaml_loader import FastLoader, check_yaml_depth

__all__ = ["merge_yaml_documents"]


def merge_yaml_documents(text: str, patch: str, key: str) -> str:
    """The document with the patch merged into it, as YAML.

    Args:
        text: The document; empty for none.
        patch: The other one.
        key: What holds the document, for messages.

    Raises:
        ValueError: One of the two is not one YAML document.
    """
    document, changes = _compose_document(text, f"{key} holds"), _compose_document(patch, f"the patch of {key} is")
    if document is None:
        return patch
    if changes is None:
        return text
    merged: str = yaml.serialize(_merge_nodes(document, changes, {}), Dumper=yaml.CSafeDumper, allow_unicode=True)
    return merged


def _compose_document(text: str, what: str) -> yaml.Node | None:
    try:
        check_yaml_depth(text)
        found: yaml.Node | None = yaml.compose(text, Loader=FastLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"{what} not one YAML document: {error}") from error
    return found


def _merge_nodes(old: yaml.Node, new: yaml.Node, seen: dict[tuple[int, int], yaml.Node]) -> yaml.Node:
    """Merge two syntax trees; not the values they stand for, whose spelling would be lost.

    `seen` keeps the work linear where aliases make one node appear many times.
    """
    if not (isinstance(old, yaml.MappingNode) and isinstance(new, yaml.MappingNode)):
        return new
    pair = (id(old), id(new))
    if pair not in seen:
        merged = seen[pair] = yaml.MappingNode(old.tag, [], flow_style=old.flow_style)
        places = {_key_identity(key): (key, value) for key, value in old.value}
        for key, value in new.value:
            name = _key_identity(key)
            places[name] = (key, _merge_nodes(places[name][1], value, seen) if name in places else value)
        merged.value = list(places.values())
    return seen[pair]


def _key_identity(key: yaml.Node) -> object:
    return (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)
