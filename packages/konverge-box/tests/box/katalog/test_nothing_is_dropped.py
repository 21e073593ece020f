"""No field of a Katalog is dropped silently: each changes the box, or is reported."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge._internal.kube.yaml_loader import load_yaml
from tests.box.katalog.katalogs import FOLDER, NAMES, import_sample

Path = tuple[str | int, ...]

KATALOGS = {name: load_yaml((FOLDER / f"{name}.yaml").read_text()) for name in NAMES}
# The header of the file, which only identifies a Katalog.
HEAD = {("apiVersion",), ("kind",)}


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in children:
        yield (*path, key)
        yield from paths(each, (*path, key))


def get_at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def outcome(katalog: Any) -> tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]:
    found = import_sample(yaml.dump(katalog, Dumper=yaml.CSafeDumper, sort_keys=False))
    listed = tuple((each.path, each.why) for each in found.listed)
    return found.text, listed, tuple(f"{each.path} {each.text}" for each in found.decisions)


WHOLE = {name: outcome(katalog) for name, katalog in KATALOGS.items()}


def change_value(value: Any) -> Any:
    """Return another value of the same type."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case dict():
            return {"zz": "other"}
        case list():
            return ["zz"]
    return "zz"


def is_reported(name: str, path: Path) -> bool:
    """Tell whether a field changes the result, or belongs to a part that is reported as a whole."""
    if any(_is_within(path, listed) for listed, _ in WHOLE[name][1]):
        return True
    without, other = copy.deepcopy(KATALOGS[name]), copy.deepcopy(KATALOGS[name])
    del get_at(without, path[:-1])[path[-1]]
    get_at(other, path[:-1])[path[-1]] = change_value(get_at(other, path))
    return outcome(without) != WHOLE[name] or outcome(other) != WHOLE[name]


def _is_within(path: Path, listed: str) -> bool:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    return text == listed or text.startswith((f"{listed}.", f"{listed}["))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_field_of_the_katalogs_is_carried_over_or_told_of(name: str) -> None:
    fields = [path for path in paths(KATALOGS[name]) if path not in HEAD]

    assert [path for path in fields if not is_reported(name, path)] == []


BASE: dict[str, Any] = {
    "kind": "Katalog",
    "metadata": {"name": "base"},
    "spec": {
        "crds": {
            "app": {
                "apiTypes": {"group": "example.com", "version": "v1", "kind": "App", "plural": "apps"},
                "mutation": {"rules": [{"field": "spec.a", "default": "b"}]},
                "validation": {"rules": [{"field": "spec.a", "equals": "b"}]},
                "operatorBox": {
                    "reconciler": {"workers": 3},
                    "reconcile": {},
                    "observe": {},
                    "emit": {},
                    "runtime": {},
                    "cross": [{"crd": "app", "as": "other", "selector": {"name": "x"}}],
                    "onReconcile": {
                        "external": [{"name": "call", "url": "https://example.com"}],
                        "deployments": [{"name": "web", "image": "nginx", "port": "80"}],
                        "services": [{"name": "web", "port": "80"}],
                        "secrets": [{"name": "web", "data": {"a": "b"}}],
                        "ingresses": [{"name": "web", "serviceName": "web", "host": "example.com"}],
                    },
                    "onDelete": {"ordered": True, "groups": [{"services": [{"name": "web"}]}]},
                    "status": {"fields": [{"path": "a", "value": "b"}]},
                },
            }
        }
    },
}


def build_named(names: str, value: Any) -> dict[str, Any]:
    """Return fields that all have the same value."""
    return dict.fromkeys(names.split(), value)


PLAIN = outcome(BASE)
ENTRY: Path = ("spec", "crds", "app")
BOX: Path = (*ENTRY, "operatorBox")
MADE: Path = (*BOX, "onReconcile")

WHEN = [{"field": "spec.x", "equals": "y"}]
# Paths, with their fields in any schema generation; each field has a value other than its default.
VOCABULARY: dict[Path, dict[str, Any]] = {
    (): build_named(
        "lifecycle policy imports security crossAccess gateway publish notification profiles", {"enabled": True}
    )
    | {"notes": {"functions": [{"name": "n", "expression": "{{ .spec.a }}"}]}, "providers": [{"name": "aws"}]},
    ("metadata",): build_named(
        "namespace clusterName description version author license tags createdBy projects", ["x"]
    ),
    ("spec",): {"imports": [{"motif": "x"}], "finalizers": ["example.com/x"]},
    ENTRY: {
        "enabled": False,
        "description": "text",
        "mode": "typed",
        "crdFile": "oven-crd.yaml",
        "crFiles": ["x"],
        "setup": {"x": 1},
        "namespaced": False,
        "namespace": "x",
        "dependsOn": ["app"],
        "enrich": ["pods"],
        "enrichAll": True,
        "labels": {"x": "y"},
        "labelSelector": {"x": "y"},
        "fieldSelector": "x=y",
        "ignoreStatusPatch": True,
        "ignoreObservedGeneration": True,
        "endpoints": {"enabled": True},
        "restrictedNamespaces": ["x"],
        "allowedNamespaces": ["x"],
        "conversion": {"storageVersion": "v1"},
        "webhooks": {"validation": {}},
        "normalize": {"spec": {"a": "{{ .spec.b }}"}, "audit": True},
        "removeFinalizers": True,
        "deletionProtection": True,
        "imports": [{"motif": "x"}],
        "serve": {"enabled": True},
        "forceConflict": False,
        "crossAccess": False,
        "katalogName": "x",
        "katalogNamespace": "x",
        "workers": 7,
        "resync": "3m",
        "queue": {"maxDepth": 3},
        "finalizers": ["example.com/x"],
        "autoscale": {"interval": "1m"},
    },
    BOX: build_named(
        ("preReconcile autoscale rollback rollBackOnError when or anyOf hooks constructor default remote"),
        {"enabled": True},
    )
    | {
        "finalizers": ["example.com/x"],
        "onCreate": {"configMaps": [{"name": "x"}]},
        "providers": {"aws": [{"s3": {"bucket": "x"}}]},
    },
    (*BOX, "reconciler"): {
        "default": False,
        "profile": "conservative",
        "resync": "3m",
        "queue": {"retryBackoff": "1s", "behaviour": {}, "failureThreshold": 2},
        "requeue": {"after": "3m"},
        "hooks": {"location": "x"},
        "constructor": {"location": "x"},
        "include": "x.yaml",
    },
    (*BOX, "reconcile"): {
        "resync": "3m",
        "imports": [{"motif": "x"}],
        "forceConflict": False,
        "remote": {"endpoint": "x"},
        "normalize": {"spec": {"a": "{{ .spec.b }}"}},
    },
    (*BOX, "observe"): {"watch": [{"kind": "Node"}], "events": {"x": 1}},
    (*BOX, "emit"): {"events": [{"reason": "X"}]},
    (*BOX, "runtime"): {
        "autoscale": {"x": 1},
        "finalizers": ["example.com/x"],
        "allowedNamespaces": ["x"],
        "restrictedNamespaces": ["x"],
        "deletionProtection": True,
        "cleanup": {"deleteAfter": "1h"},
    },
    (*ENTRY, "mutation"): {"include": "x", "external": [{"name": "x"}], "mutateFirst": False},
    (*ENTRY, "validation"): {"include": "x", "external": [{"name": "x"}]},
    (*ENTRY, "mutation", "rules", 0): {
        "override": "c",
        "valueType": "int",
        "when": WHEN,
        "or": WHEN,
        "anyOf": WHEN,
        "fires": {"reconcile": False},
        "link": "x",
    },
    (*ENTRY, "validation", "rules", 0): {
        "message": "x",
        "action": "warn",
        "valueType": "int",
        "when": WHEN,
        "or": WHEN,
        "operator": "contains",
        "value": "x",
        "fires": {"reconcile": False},
        "link": "x",
        **build_named(
            (
                "notEquals contains notContains prefix notPrefix suffix notSuffix regex greaterThan lessThan "
                "min max greaterThanOrEqual lessThanOrEqual in notIn"
            ),
            "3",
        ),
        **dict.fromkeys(("between", "notBetween"), "1,2"),
        **dict.fromkeys(("exists", "notExists", "unique", "typeMap", "typeNull"), True),
    },
    (*BOX, "cross", 0): {"labelSelector": "x", "labels": "x", "source": {"endpoint": "x"}, "strategy": "all"},
    (*BOX, "cross", 0, "selector"): {"namespace": "x", "matchLabels": {"a": "b"}},
    (*MADE, "external", 0): {
        "protocol": "redis",
        "query": "x",
        "method": "POST",
        "headers": {"a": "b"},
        "body": "x",
        "auth": {"env": "X"},
        "token": "$X",
        "timeout": "3s",
        "expectedStatus": 201,
        "continueOnError": True,
        "when": WHEN,
        "or": WHEN,
        "retryBackoff": {"initial": "1s", "max": "2s", "multiplier": 3.0, "maxAttempts": 4},
        "cacheFor": "3s",
        "poolSize": 4,
        "sleep": "1s",
        "fires": {"reconcile": False},
        "include": "x.yaml",
    },
    MADE: {
        "when": WHEN,
        "or": WHEN,
        "name": "group",
        "git": {"x": 1},
        "docker": {"x": 1},
        **build_named(
            (
                "daemonSets podTemplates storageClasses serviceMonitors priorityClasses runtimeClasses "
                "namespaces configMaps networkPolicies resourceQuotas limitRanges clusterRoles "
                "clusterRoleBindings serviceAccounts roles roleBindings custom replicaSets jobs cronJobs "
                "statefulSets persistentVolumes persistentVolumeClaims hpa pdb pods"
            ),
            [{"name": "x"}],
        ),
    },
    (*MADE, "deployments", 0): {
        "namespace": "x",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "reconcile": True,
        "when": WHEN,
        "or": WHEN,
        "forEach": {"field": "spec.x"},
        "sleep": "1s",
        "forceConflict": False,
        "tag": "1",
        "replicas": "3",
        "protocol": "UDP",
        "env": [{"name": "A", "value": "b"}],
        "envFrom": {"secretRef": ["x"]},
        "resources": {"profile": "burst"},
        "probes": {"startup": {"type": "tcp"}},
        "securityContext": {"runAsUser": 3},
        "podSecurity": {"fsGroup": 3},
        "volumes": [{"name": "x", "emptyDir": {}}],
        "volumeMounts": [{"name": "x", "mountPath": "/x"}],
        "serviceAccountName": "x",
        "nodeSelector": {"a": "b"},
        "imagePullSecrets": ["x"],
        "rollingUpdate": {"profile": "safe"},
        "autoscale": {"min": 1},
        "workingDirectory": "/x",
        "command": ["x"],
        "args": ["x"],
    },
    (*MADE, "services", 0): {"type": "NodePort", "headless": True, "targetPort": "8080", "selector": {"a": "b"}},
    (*MADE, "secrets", 0): {
        "type": "x",
        "fromSecret": "x",
        "fromNamespace": "x",
        "toNamespaces": ["x"],
        "once": True,
        "rotateAfter": "3d",
        "tls": {"commonName": "x", "dnsNames": ["x"], "validFor": "3d"},
    },
    (*MADE, "ingresses", 0): {
        "path": "/x",
        "pathType": "Exact",
        "servicePort": "8080",
        "className": "x",
        "ingressClass": "x",
        "tls": {"create": True, "secretName": "x", "hosts": ["x"], "validFor": "3d"},
    },
    (*BOX, "onDelete"): {"timeout": "3m", "when": WHEN, "or": WHEN, "deployments": [{"name": "x"}]},
    (*BOX, "onDelete", "groups", 0): {"name": "x", "when": WHEN, "jobs": [{"image": "x"}]},
    (*BOX, "status"): {"conditions": False},
    (*BOX, "status", "fields", 0): {"type": "int", "clearOnFalse": True, "when": WHEN, "or": WHEN},
}


def with_field(path: Path, key: str, value: Any) -> Any:
    katalog = copy.deepcopy(BASE)
    get_at(katalog, path)[key] = value
    return katalog


@pytest.mark.parametrize(
    ("path", "key"), [pytest.param(path, key, id=f"{path[-1] if path else ''}.{key}") for path, fields in
                      VOCABULARY.items() for key in fields]
)  # fmt: skip
def test_each_known_field_is_carried_over_or_told_of(path: Path, key: str) -> None:
    assert outcome(with_field(path, key, VOCABULARY[path][key])) != PLAIN


MAPPINGS = [path for path in ((), *paths(BASE)) if isinstance(get_at(BASE, path), dict)]


@settings(max_examples=40)
@given(st.sampled_from(MAPPINGS), st.text("abcXYZ09-_.", min_size=1, max_size=8).map(lambda text: f"zz{text}"))
def test_whatever_is_unknown_is_told_of(path: Path, key: str) -> None:
    before, after = PLAIN, outcome(with_field(path, key, "a value"))

    assert after[0] != before[0] or len(after[1]) > len(before[1])


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "{{ .spec.a }}", "{{", "{%", "3"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "a", "{{ .x }}"]), inner),
    max_leaves=4,
)
PLACES = [(name, path) for name in NAMES for path in paths(KATALOGS[name]) if path not in HEAD]


@settings(max_examples=40)
@given(st.sampled_from(PLACES), ODD)
def test_whatever_stands_in_a_field_it_is_imported_or_told_of(place: tuple[str, Path], value: Any) -> None:
    name, path = place
    katalog = copy.deepcopy(KATALOGS[name])
    get_at(katalog, path[:-1])[path[-1]] = value

    outcome(katalog)
