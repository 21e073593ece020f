"""Generate konverge_cluster/_internal/embedded/protobuf.json from the .proto files of the Kubernetes modules.

    python tools/protobuf/generate.py

Typed Go clients (for example kubectl create) send objects of built-in kinds in protobuf. Decoding needs the number, the
name and the type of each field of each message; the rest of the files is not kept. tools/controlplane pins the modules;
``go`` must find them.

A message is a mapping from field number to ``name type``: the type is the name of a scalar or of a message. ``*``
before it marks a list, ``{`` a mapping from strings, and ``~`` a message whose fields are inlined in the JSON form of
the message around it (if the schemas of konverge._internal.apply have no field of that name).
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = REPOSITORY / "packages/konverge-cluster/src/konverge_cluster/_internal/embedded/protobuf.json"

API = (
    "apps/v1",
    "authentication/v1",
    "authorization/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination/v1",
    "core/v1",
    "discovery/v1",
    "events/v1",
    "networking/v1",
    "node/v1",
    "policy/v1",
    "rbac/v1",
    "scheduling/v1",
    "storage/v1",
)
MACHINERY = ("apis/meta/v1", "runtime", "api/resource", "util/intstr")
# The possible bodies of a request; the messages that they contain are added.
ROOTS = (
    *(f"io.k8s.api.apps.v1.{kind}" for kind in ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet")),
    "io.k8s.api.apps.v1.StatefulSet",
    *(f"io.k8s.api.authentication.v1.{kind}" for kind in ("SelfSubjectReview", "TokenRequest", "TokenReview")),
    *(f"io.k8s.api.authorization.v1.{kind}Review" for kind in ("SelfSubjectAccess", "SelfSubjectRules")),
    *(f"io.k8s.api.authorization.v1.{kind}AccessReview" for kind in ("LocalSubject", "Subject")),
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
    *(f"io.k8s.api.batch.v1.{kind}" for kind in ("CronJob", "Job")),
    "io.k8s.api.coordination.v1.Lease",
    *(
        f"io.k8s.api.core.v1.{kind}"
        for kind in (
            "Binding",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        )
    ),
    "io.k8s.api.discovery.v1.EndpointSlice",
    "io.k8s.api.events.v1.Event",
    *(f"io.k8s.api.networking.v1.{kind}" for kind in ("Ingress", "IngressClass", "NetworkPolicy")),
    "io.k8s.api.node.v1.RuntimeClass",
    *(f"io.k8s.api.policy.v1.{kind}" for kind in ("Eviction", "PodDisruptionBudget")),
    *(f"io.k8s.api.rbac.v1.{kind}" for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    "io.k8s.api.scheduling.v1.PriorityClass",
    "io.k8s.api.storage.v1.StorageClass",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.runtime.Unknown",
)
PACKAGE = re.compile(r"^package (\S+);", re.MULTILINE)
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(?:(optional|repeated)\s+)?(map<string,\s*[\w.]+>|[\w.]+)\s+(\w+)\s*=\s*(\d+);", re.MULTILINE)
SCALARS = {"string", "int32", "int64", "bool", "bytes", "double"}

Message = dict[str, str]

SCHEMAS = {
    name: node
    for file in (REPOSITORY / "packages/konverge/src/konverge/_internal/apply/builtin").glob("*.json")
    for name, node in json.loads(file.read_text()).get("definitions", {}).items()
}


def main() -> None:
    api, machinery = module("k8s.io/api"), module("k8s.io/apimachinery") / "pkg"
    sources = [api / name / "generated.proto" for name in API]
    sources += [machinery / name / "generated.proto" for name in MACHINERY]
    messages: dict[str, Message] = {}
    for source in sources:
        messages |= messages_of(source.read_text())
    kept = {name: with_inlined(name, messages[name]) for name in sorted(reachable(messages))}
    TARGET.write_text(json.dumps(kept, indent=None, separators=(",", ":")) + "\n")
    print(f"{TARGET.relative_to(REPOSITORY)}  {TARGET.stat().st_size} bytes, {len(kept)} messages")


def with_inlined(name: str, message: Message) -> Message:
    known = SCHEMAS.get(name, {}).get("properties")
    if not known:
        return message
    return {
        number: spec if spec.split(" ", 1)[0] in known or is_scalar(spec) else spec.replace(" ", " ~", 1)
        for number, spec in message.items()
    }


def is_scalar(spec: str) -> bool:
    return spec.split(" ", 1)[1].lstrip("*{") in SCALARS


def module(name: str) -> Path:
    command = ["go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", name]
    where = REPOSITORY / "tools/controlplane/kubernetes"
    return Path(subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout.strip())


def messages_of(text: str) -> dict[str, Message]:
    text = re.sub(r"^\s*//.*\n", "", text, flags=re.MULTILINE)
    package = PACKAGE.search(text)
    assert package is not None, "a .proto file names its package"
    own = definition_prefix(package[1])
    return {
        own + name: {number: format_type(rule, kind, field, own) for rule, kind, field, number in FIELD.findall(body)}
        for name, body in MESSAGE.findall(text)
    }


def definition_prefix(package: str) -> str:
    """Return the OpenAPI prefix of a package: ``k8s.io.api.core.v1`` becomes ``io.k8s.api.core.v1.``."""
    return package.replace("k8s.io.", "io.k8s.", 1) + "."


def format_type(rule: str, kind: str, field: str, own: str) -> str:
    if kind.startswith("map<"):
        value = kind[len("map<") : -1].partition(",")[2].strip()
        return f"{field} {{{resolve_type(value, own)}"
    return f"{field} {'*' if rule == 'repeated' else ''}{resolve_type(kind, own)}"


def resolve_type(kind: str, own: str) -> str:
    if kind in SCALARS:
        return kind
    return definition_prefix(kind.lstrip("."))[:-1] if "." in kind else own + kind


def reachable(messages: dict[str, Message]) -> set[str]:
    found: set[str] = set()
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        kinds = (spec.split(" ", 1)[1].lstrip("*{") for spec in messages[name].values())
        waiting += [kind for kind in kinds if kind not in SCALARS]
    return found


if __name__ == "__main__":
    main()
