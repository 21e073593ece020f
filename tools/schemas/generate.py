"""Generate konverge/apply/builtin/*.json and konverge/types/ from a real API server's OpenAPI v3 documents.

    python tools/schemas/generate.py

The script starts a real control plane, queries its server, and stops it. The output keeps the structure (types, lists
and their keys, defaults, enums) without descriptions. `konverge._internal.typegen` generates the modules of TypedDicts.

OpenAPI does not contain which zero values survive the server's decoding and encoding. ``replicas: 0`` does, ``paused:
false`` does not, ``resources: {}`` appears without a request. That follows from the Go type and the JSON tag of each
field. The script reads them from the sources of the modules that tools/controlplane pins (``go`` must find them). It
writes them into each definition as ``x-konverge-always`` (field to the written form of an absent value) and
``x-konverge-keeps-zero`` (fields whose zero is kept).
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from konverge._internal.typegen import generate_builtin_modules
from konverge_cluster.controlplane import RealCluster

GROUP_VERSIONS = (
    "v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
)

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = REPOSITORY / "packages/konverge/src/konverge/_internal/apply/builtin"
TYPES = REPOSITORY / "packages/konverge/src/konverge/types"
SHARED = "shared"
DROPPED = {"description", "x-kubernetes-group-version-kind", "x-kubernetes-unions"}
REFERENCE = "#/components/schemas/"
OBJECT_META = REFERENCE + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def main() -> None:
    with RealCluster() as cluster:
        documents = {version: request_json(cluster, document_path(version)) for version in GROUP_VERSIONS}
    kinds, definitions = read(documents)
    for path in [*write(kinds, definitions), *write_types(generate_builtin_modules(kinds, definitions))]:
        print(f"{path.relative_to(REPOSITORY)}  {path.stat().st_size} bytes")


def request_json(cluster: RealCluster, path: str) -> Any:
    """Return the decoded response of the API server."""
    kubeconfig = json.loads(cluster.kubeconfig.read_text())
    trust = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    token = kubeconfig["users"][0]["user"]["token"]
    request = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {token}"})
    context = ssl.create_default_context(cadata=trust)
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return json.load(answer)


def document_path(version: str) -> str:
    return f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}"


MODULES = {
    "io.k8s.api.": "k8s.io/api",
    "io.k8s.apimachinery.": "k8s.io/apimachinery",
    "io.k8s.apiextensions-apiserver.": "k8s.io/apiextensions-apiserver",
}
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\t(?:(\w+)[ \t]+)?(\S+)[ \t]+`json:\"([^\"]*)\"", re.MULTILINE)
ZEROS = {"string": "", "integer": 0, "number": 0, "boolean": False}
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Types with their own JSON form, and the form of their zero value.
OWN_ZEROS = {
    META + "Time": None,
    META + "MicroTime": None,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "0",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 0,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": None,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": None,
}


def structs_of(package: str, folders: dict[str, Path]) -> dict[str, str]:
    """Return the bodies of the structs of a Go package by name."""
    module = next(prefix for prefix in MODULES if package.startswith(prefix))
    folder = folders[module].joinpath(*package[len(module) :].split("."))
    sources = [path.read_text() for path in sorted(folder.glob("*.go")) if not path.name.endswith("_test.go")]
    return {name: body for source in sources for name, body in STRUCT.findall(source)}


def module_folders() -> dict[str, Path]:
    found = {}
    for prefix, module in MODULES.items():
        command = ["go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", module]
        where = REPOSITORY / "tools/controlplane/kubernetes"
        found[prefix] = Path(
            subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout.strip()
        )
    return found


def add_zeros(definitions: dict[str, Any]) -> None:
    folders = module_folders()
    packages: dict[str, dict[str, str]] = {}
    for name, node in definitions.items():
        package, _, kind = name.rpartition(".")
        if "properties" not in node:
            continue
        if package not in packages:
            packages[package] = structs_of(package, folders)
        always: dict[str, Any] = {}
        keeps: list[str] = []
        for field, (go_type, options) in fields_of(kind, packages[package]).items():
            of = node["properties"].get(field)
            if of is None:
                continue
            pointer = go_type.startswith("*")
            resolved = reference(of)
            is_struct = resolved not in OWN_ZEROS and "properties" in definitions.get(resolved, {})
            if pointer and not is_struct:
                keeps.append(field)
            if "omitzero" in options or (
                "omitempty" in options and (pointer or not (is_struct or resolved in OWN_ZEROS))
            ):
                continue
            if pointer:
                always[field] = None
            elif resolved in OWN_ZEROS:
                always[field] = OWN_ZEROS[resolved]
            else:
                always[field] = (
                    {} if is_struct else None if go_type.startswith(("[]", "map[")) else zero(of, definitions)
                )
        if always:
            node["x-konverge-always"] = always
        if keeps:
            node["x-konverge-keeps-zero"] = sorted(keeps)


def fields_of(kind: str, structs: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
    """Map JSON names to Go types and tag options, including embedded structs (all are in the same package)."""
    found: dict[str, tuple[str, list[str]]] = {}
    for _, go_type, tag in FIELD.findall(structs.get(kind, "")):
        name, *options = tag.split(",")
        if "inline" in options:
            found |= fields_of(go_type, structs)
        elif name not in ("", "-"):
            found[name] = (go_type, options)
    return found


def reference(node: dict[str, Any]) -> str:
    target = node.get("$ref") or next((each.get("$ref", "") for each in node.get("allOf", ())), "")
    return target.removeprefix(REFERENCE)


def zero(node: dict[str, Any], definitions: dict[str, Any]) -> Any:
    return ZEROS.get(definitions.get(reference(node), node).get("type", ""))


def read(documents: dict[str, Any]) -> tuple[dict[str, dict[str, str]], dict[str, Any]]:
    """Return the definition names by apiVersion and kind, and all definitions of the documents."""
    definitions: dict[str, Any] = {}
    kinds: dict[str, dict[str, str]] = {version: {} for version in documents}
    for version, document in documents.items():
        for name, node in document["components"]["schemas"].items():
            definitions[name] = compact(node)
            for each in node.get("x-kubernetes-group-version-kind", ()):
                of = f"{each['group']}/{each['version']}" if each["group"] else each["version"]
                if of == version and is_object(node):
                    kinds[version][each["kind"]] = name
    return kinds, definitions


def write(kinds: dict[str, dict[str, str]], definitions: dict[str, Any]) -> list[Path]:
    add_zeros(definitions)

    files = {version: version.replace("/", "_") for version in kinds}
    packages = {}
    for version, of in kinds.items():
        for name in of.values():
            packages[name.rpartition(".")[0]] = files[version]

    contents: dict[str, Any] = {file: {"kinds": kinds[version], "definitions": {}} for version, file in files.items()}
    contents[SHARED] = {"kinds": {}, "definitions": {}}
    for name in sorted(reachable(definitions, [name for of in kinds.values() for name in of.values()])):
        contents[packages.get(name.rpartition(".")[0], SHARED)]["definitions"][name] = definitions[name]
    contents["index"] = {"group_versions": files, "packages": packages}

    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("*.json"):
        old.unlink()
    written = []
    for file, content in sorted(contents.items()):
        path = TARGET / f"{file}.json"
        path.write_text(json.dumps(content, sort_keys=True, indent=1 if file == "index" else None) + "\n")
        written.append(path)
    return written


def write_types(modules: dict[str, str]) -> list[Path]:
    for old in TYPES.glob("*_v*.py"):
        old.unlink()
    written = []
    for name, text in modules.items():
        path = TYPES / f"{name}.py"
        path.write_text(text)
        written.append(path)
    return written


def is_object(node: Any) -> bool:
    """Return True for an object, but not for a list or request options, which have no ObjectMeta."""
    return OBJECT_META in json.dumps(node.get("properties", {}).get("metadata", {}))


def compact(node: Any) -> Any:
    if isinstance(node, list):
        return [compact(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        if key in ("properties", "patternProperties", "definitions") and isinstance(value, dict):
            kept[key] = {name: compact(below) for name, below in value.items()}
        elif key not in DROPPED:
            kept[key] = value if key in ("default", "enum") else compact(value)
    return kept


def reachable(definitions: dict[str, Any], names: list[str]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names.extend(re.findall(rf'"{re.escape(REFERENCE)}([^"]+)"', json.dumps(definitions[name])))
    return found


if __name__ == "__main__":
    main()
