"""Merge of two YAML documents by their nodes, so that unchanged scalars keep their spelling."""

from __future__ import annotations

import yaml

from konverge._internal.kube.yaml_loader import FastLoader, check_yaml_depth

__all__ = ["merge_yaml_documents"]


def merge_yaml_documents(text: str, patch: str, key: str) -> str:
    """Return the document with the patch merged into it, as YAML.

    Args:
        text: The document; empty for none.
        patch: The document to merge into it.
        key: The key of the document for messages.

    Raises:
        ValueError: The text or the patch is not one YAML document.
    """
    document, changes = _compose_document(text, key), _compose_document(patch, f"patch of {key}")
    if document is None:
        return patch
    if changes is None:
        return text
    merged: str = yaml.serialize(_merge_nodes(document, changes, {}), Dumper=yaml.CSafeDumper, allow_unicode=True)
    return merged


def _compose_document(text: str, subject: str) -> yaml.Node | None:
    try:
        check_yaml_depth(text)
        document: yaml.Node | None = yaml.compose(text, Loader=FastLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"{subject}: expected one YAML document: {error}") from error
    return document


def _merge_nodes(old: yaml.Node, new: yaml.Node, seen: dict[tuple[int, int], yaml.Node]) -> yaml.Node:
    """Merge two syntax trees; a merge of the values would lose their spelling.

    `seen` keeps the work linear when aliases make one node appear many times.
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
