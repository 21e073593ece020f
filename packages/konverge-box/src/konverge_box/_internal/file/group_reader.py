"""Reading of the parts whose form in the file differs from the model: groups of resources and deletion groups."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from msgspec import structs

from konverge._internal.apply.builtin_schemas import find_builtin_schema
from konverge._internal.apply.schema import Schema
from konverge._internal.kube import GroupVersionKind
from konverge_box._internal.file.box_kinds import KINDS, BoxKind
from konverge_box._internal.file.manifest_validation import find_manifest_errors, find_missing_fields, find_schema
from konverge_box._internal.file.model import BoxResource, ConditionSpec, DeleteGroup, DeleteTarget, Group
from konverge_box._internal.file.resource_entries import (
    ConfigMapEntry,
    CustomEntry,
    PodsEntry,
    ResourceEntry,
    SecretEntry,
    get_entry_type,
)
from konverge_box._internal.file.server_rules import find_server_errors, list_file_paths
from konverge_box._internal.file.short_forms import expand_short_form
from konverge_box._internal.file.struct_reader import BAD, StructReader, describe_type, has_expression
from konverge_box._internal.file.validation_errors import Path, format_hint, format_path
from konverge_box._internal.file.yaml_source import YamlSource

__all__ = ["build_reader"]


def build_reader(source: YamlSource) -> StructReader:
    """Return a reader for a document that supports groups."""
    groups = _GroupReader(source)
    return groups.reader


class _GroupReader:
    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self.reader = StructReader(source, {Group: self._read_group, DeleteGroup: self._read_delete_group})

    def _read_group(self, value: Any, path: Path) -> Any:
        group = self.reader.read_struct(Group, _remove_fields(value, KINDS), path, also=tuple(KINDS))
        if not isinstance(value, dict):
            return BAD
        if "resources" in value:
            self._source.add_error((*path, "resources"), f"unknown field; known: {', '.join(KINDS)}")
        resources: list[Any] = []
        for key, kind in KINDS.items():
            if key in value:
                resources += self._read_list(kind, value[key], (*path, key))
        if group is BAD or any(each is BAD for each in resources):
            return BAD
        return structs.replace(group, resources=tuple(resources))

    def _read_delete_group(self, value: Any, path: Path) -> Any:
        group = self.reader.read_struct(DeleteGroup, _remove_fields(value, ("run",)), path, also=("run",))
        if not isinstance(value, dict):
            return BAD
        jobs = self._read_list(KINDS["jobs"], value.get("run", []), (*path, "run"))
        if group is BAD or any(each is BAD for each in jobs):
            return BAD
        for key, targets in group.delete.items():
            self._read_targets(key, targets, (*path, "delete", key))
        return DeleteGroup(
            name=group.name,
            when=group.when,
            or_=group.or_,
            any_of=group.any_of,
            run=tuple(jobs),
            delete=group.delete,
        )

    def _read_targets(self, key: str, targets: tuple[DeleteTarget, ...], path: Path) -> None:
        if key not in KINDS:
            self._source.add_error(path, f"unknown kind{format_hint(key, KINDS)}")
            return
        for index, target in enumerate(targets):
            named = target.api_version is not None or target.kind is not None
            if key == "custom" and (target.api_version is None or target.kind is None):
                self._source.add_error((*path, index), "expected apiVersion and kind of the object to delete")
            elif key != "custom" and named:
                self._source.add_error((*path, index), f"{key} already have a kind; remove apiVersion and kind")

    def _read_list(self, kind: BoxKind, value: Any, path: Path) -> list[Any]:
        if not isinstance(value, list):
            self._source.add_error(path, f"expected a list, found {describe_type(value)}")
            return [BAD]
        return [self._read_resource(kind, each, (*path, index)) for index, each in enumerate(value)]

    def _read_resource(self, kind: BoxKind, value: Any, path: Path) -> Any:
        form = get_entry_type(kind.key, has_pods=kind.pods is not None)
        entry = self.reader.read_struct(form, value, path, also=tuple(kind.short))
        if not isinstance(value, dict):
            return BAD
        gvk = kind.gvk or _parse_custom_kind(entry)
        schema = find_builtin_schema(gvk) if gvk is not None else None
        short = {name: each for name, each in value.items() if name in kind.short}
        errors_before = len(self._source.errors)
        self._check_short_form(kind, short, schema, path)
        if entry is BAD:
            return BAD
        self._check_manifest(kind, entry, schema, path)
        if len(self._source.errors) > errors_before:
            return BAD
        rendered = expand_short_form(kind, entry, short, schema)
        self._check_object(kind, entry, rendered, schema, path)
        for at, message in find_server_errors(kind, rendered):
            places = ((*path, *each) for each in list_file_paths(kind, at))
            self._source.add_error(next((each for each in places if each in self._source.positions), path), message)
        return BoxResource(
            path=format_path(path),
            kind=kind.key,
            object=rendered,
            when=entry.when,
            or_=entry.or_,
            any_of=entry.any_of,
            for_each=entry.for_each,
            reconcile=entry.reconcile,
            adopt=entry.adopt,
            wait_for=self._to_conditions(entry.wait_for, (*path, "waitFor")),
            ready_when=self._to_conditions(entry.ready_when, (*path, "readyWhen")),
            **_collect_optional_fields(entry),
        )

    def _to_conditions(self, declared: tuple[ConditionSpec | str, ...], path: Path) -> tuple[ConditionSpec, ...]:
        """Return conditions in which an expression that stands alone must be true."""
        for index, each in enumerate(declared):
            if isinstance(each, str) and not has_expression(each):
                problem = "expected a condition, or an expression such as {{ self.status.ready }}, found a string"
                self._source.add_error((*path, index), problem)
        return tuple(ConditionSpec(field=each, equals=True) if isinstance(each, str) else each for each in declared)

    def _check_short_form(self, kind: BoxKind, short: dict[str, Any], schema: Schema | None, path: Path) -> None:
        for name, value in short.items():
            below = find_schema(schema, kind.short[name])
            if name == "env" and isinstance(value, dict):  # the short form of the list: names and strings
                for variable, text in value.items():
                    if not isinstance(text, str):
                        problem = f"expected a string, found {describe_type(text)}; quote it"
                        self._source.add_error((*path, name, variable), problem)
                continue
            if below is not None:
                self._add_errors(find_manifest_errors(value, below, (*path, name)))
        data = short.get("data") if kind.key == "secrets" else None
        for name, text in data.items() if isinstance(data, dict) else ():
            if isinstance(text, str) and not has_expression(text) and not _is_base64(text):
                self._source.add_error((*path, "data", name), "expected base64; put plain text in stringData")

    def _check_manifest(self, kind: BoxKind, entry: ResourceEntry, schema: Schema | None, path: Path) -> None:
        at = (*path, "manifest")
        if schema is not None:
            self._add_errors(find_manifest_errors(entry.manifest, schema, at))
        metadata = entry.manifest.get("metadata")
        if entry.name and isinstance(metadata, dict) and "name" in metadata:
            self._source.add_error(
                (*at, "metadata", "name"), "the name is given twice; remove it here or from the resource"
            )
        if kind.gvk is not None:
            for name, own in (("apiVersion", kind.gvk.api_version), ("kind", kind.gvk.kind)):
                if entry.manifest.get(name, own) != own:
                    self._source.add_error((*at, name), f"expected {own}; put other kinds under custom")
        elif _parse_custom_kind(entry) is None:
            self._source.add_error(path, "expected apiVersion and kind of the object")
        if not kind.namespaced and entry.namespace:
            self._source.add_error((*path, "namespace"), f"{kind.key} are cluster-scoped; remove the namespace")

    def _check_object(
        self, kind: BoxKind, entry: ResourceEntry, rendered: dict[str, Any], schema: Schema | None, path: Path
    ) -> None:
        if schema is not None:
            for field in find_missing_fields(rendered, schema):
                self._source.add_error(path, f"{field} is missing in the {rendered['kind']} of this entry")
        if isinstance(entry, PodsEntry):
            pods: Any = rendered
            for step in (*(kind.pods or ()), "spec", "containers"):
                pods = pods.get(step) if isinstance(pods, dict) else None
            for container in pods if isinstance(pods, list) else [{}]:
                if isinstance(container, dict) and "image" not in container:
                    name = container.get("name", entry.container_name)
                    self._source.add_error(path, f"image is missing: the container {name} has none")

    def _add_errors(self, errors: Any) -> None:
        for at, message in errors:
            self._source.add_error(at, message)


def _collect_optional_fields(entry: ResourceEntry) -> dict[str, Any]:
    """Return the fields of an entry that only some kinds have."""
    match entry:
        case SecretEntry():
            return {
                "once": entry.once,
                "rotate_after": entry.rotate_after,
                "tls": entry.tls,
                "copy_from": entry.from_secret,
                "to_namespaces": entry.to_namespaces,
            }
        case ConfigMapEntry():
            return {"copy_from": entry.from_config_map, "to_namespaces": entry.to_namespaces}
        case CustomEntry():
            return {"required_conditions": entry.required_conditions}
    return {}


def _parse_custom_kind(entry: Any) -> GroupVersionKind | None:
    if not isinstance(entry, CustomEntry):
        return None
    api_version = entry.api_version or entry.manifest.get("apiVersion")
    kind = entry.kind or entry.manifest.get("kind")
    if isinstance(api_version, str) and isinstance(kind, str) and api_version and kind:
        return GroupVersionKind.parse(api_version, kind)
    return None


def _remove_fields(value: Any, names: Any) -> Any:
    return {name: each for name, each in value.items() if name not in names} if isinstance(value, dict) else value


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
