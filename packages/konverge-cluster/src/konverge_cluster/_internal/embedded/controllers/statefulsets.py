"""The simulated StatefulSet controller: pods with ordinals, one after the other, each with its own claims.

A reconcile makes one decision: the first absent or obstructing pod determines the step, and all others wait for the
next reconcile. A `Parallel` set creates and deletes without waiting, but also updates one pod after the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any

from konverge._internal.kube import Object, ObjectKey, is_deleting
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import (
    claim_objects,
    list_affected_controllers,
)
from konverge_cluster._internal.embedded.controllers.controller_revisions import RevisionHistory, get_template
from konverge_cluster._internal.embedded.controllers.pod_state import (
    build_pod_from_template,
    compute_seconds_to_available,
    get_phase,
    is_available,
    is_finished,
    is_ready,
)

__all__ = ["StatefulSetController", "build_stateful_pod", "build_stateful_set_status"]

REVISION_LABEL = "controller-revision-hash"
_POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
_POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


class StatefulSetController:
    """The controller. Its keys are those of StatefulSets."""

    name = "statefulset-controller"
    watches = frozenset({STATEFUL_SET.group_kind, POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock
        self._history = RevisionHistory(view, writer, "controller.kubernetes.io/hash")

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a StatefulSet or of a pod's controller; for a pod without one, those that can adopt it."""
        if notice.kind == STATEFUL_SET.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        return list_affected_controllers(self._view, notice, STATEFUL_SET)

    def reconcile(self, key: Hashable) -> float | None:
        """Create, delete or replace the next pod, and write the status if it changed."""
        assert isinstance(key, ObjectKey)
        stateful_set = self._view.get(STATEFUL_SET, key)
        if stateful_set is None:
            return None
        now = self._clock.now()
        pods = {
            ordinal: pod
            for pod in claim_objects(self._view, self._writer, stateful_set, POD, stateful_set["spec"]["selector"])
            if (ordinal := _parse_ordinal(stateful_set, pod)) is not None
        }
        current, update, history = self._sync_revisions(stateful_set)
        pass_ = _StatefulSetSync(stateful_set, pods, current, update, now, self._view, self._writer)
        if not is_deleting(stateful_set):
            pass_.run()
        status = build_stateful_set_status(stateful_set, pass_.pods, current, update, now, replaced=pass_.given_up)
        if status != (stateful_set.get("status") or {}):
            stateful_set = self._writer.update_status(stateful_set, status)
        used = {current["metadata"]["name"], update["metadata"]["name"], *map(_get_revision, pods.values())}
        self._history.delete_unused(stateful_set, history, used)
        min_ready = stateful_set["spec"].get("minReadySeconds", 0)
        waits = [compute_seconds_to_available(pod, min_ready, now) for pod in pass_.pods.values()]
        return min((seconds for seconds in waits if seconds), default=None)

    def _sync_revisions(self, stateful_set: Object) -> tuple[Object, Object, list[Object]]:
        """Return the current revision, the update revision, and all revisions, oldest first."""
        history = self._history.list_revisions(stateful_set)
        update = self._history.ensure_current(stateful_set, history)
        running = (stateful_set.get("status") or {}).get("currentRevision")
        current = next((revision for revision in history if revision["metadata"]["name"] == running), update)
        return current, update, history


class _StatefulSetSync:
    """One reconcile of one set. `pods` contains the pods at its start, by ordinal."""

    def __init__(
        self,
        stateful_set: Object,
        pods: dict[int, Object],
        current: Object,
        update: Object,
        now: datetime,
        view: ClusterView,
        writer: ControllerClient,
    ) -> None:
        spec = stateful_set["spec"]
        self.pods = pods
        self.given_up = 0
        self._stateful_set = stateful_set
        self._current = current
        self._update = update
        self._now = now
        self._view = view
        self._writer = writer
        self._start = (spec.get("ordinals") or {}).get("start", 0)
        self._wanted = range(self._start, self._start + spec.get("replicas", 1))
        self._one_by_one = spec.get("podManagementPolicy") != "Parallel"
        self._strategy = spec.get("updateStrategy") or {}
        self._min_ready = spec.get("minReadySeconds", 0)

    def run(self) -> None:
        """Perform the next step: fill gaps, then delete excess pods, then update."""
        unavailable = [ordinal for ordinal in sorted(self.pods) if self._is_unavailable(self.pods[ordinal])]
        first_unavailable = next(
            (ordinal for ordinal in self._wanted if ordinal not in self.pods or ordinal in unavailable),
            unavailable[0] if unavailable else None,
        )
        for ordinal in self._wanted:
            if not self._ensure_pod(ordinal) and self._one_by_one:
                return
        for ordinal in sorted((number for number in self.pods if number not in self._wanted), reverse=True):
            self._scale_down(ordinal, first_unavailable)
            if self._one_by_one:
                return
        if self._strategy.get("type") != "OnDelete":
            self._replace_outdated()

    def _ensure_pod(self, ordinal: int) -> bool:
        """Create or repair one pod if necessary; return True if it exists and is available."""
        pod = self.pods.get(ordinal)
        if pod is None:
            self._create(ordinal)
            return False
        if is_finished(pod):
            if not is_deleting(pod):
                self._writer.delete(pod)
            return False
        if get_phase(pod) == "Pending":
            self._create_claims(pod)
        return not is_deleting(pod) and get_phase(pod) == "Running" and is_available(pod, self._min_ready, self._now)

    def _create(self, ordinal: int) -> None:
        partition = (self._strategy.get("rollingUpdate") or {}).get("partition")
        running = (self._stateful_set.get("status") or {}).get("currentReplicas", 0)
        # Below the partition the old template remains; without one, until the update has reached the ordinal.
        outdated = self._strategy.get("type", "RollingUpdate") == "RollingUpdate" and (
            ordinal < self._start + (running if partition is None else partition)
        )
        pod = build_stateful_pod(self._stateful_set, self._current if outdated else self._update, ordinal)
        self._create_claims(pod)
        self._writer.create(pod)

    def _create_claims(self, pod: Object) -> None:
        for claim in _build_claims(self._stateful_set, pod):
            if self._view.get(PERSISTENT_VOLUME_CLAIM, ObjectKey.of(claim)) is None:
                self._writer.create(claim)

    def _scale_down(self, ordinal: int, first_unavailable: int | None) -> None:
        """Delete one excess pod, unless another pod that is not available must recover first."""
        pod = self.pods[ordinal]
        waits = self._one_by_one and self._is_unavailable(pod) and ordinal != first_unavailable
        if not is_deleting(pod) and not waits:
            self._writer.delete(pod)

    def _replace_outdated(self) -> None:
        partition = (self._strategy.get("rollingUpdate") or {}).get("partition", 0)
        for ordinal in reversed(self._wanted[partition:]):
            pod = self.pods.get(ordinal)
            if pod is not None and _get_revision(pod) != self._update["metadata"]["name"] and not is_deleting(pod):
                self._writer.delete(pod)
                self.given_up = 1
                return
            if pod is None or self._is_unavailable(pod):
                return

    def _is_unavailable(self, pod: Object) -> bool:
        return is_deleting(pod) or not is_available(pod, self._min_ready, self._now)


def build_stateful_pod(stateful_set: Object, revision: Object, ordinal: int) -> Object:
    """Return the pod with that ordinal, created from the template of a revision."""
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    pod = build_pod_from_template(get_template(revision), stateful_set)
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"] = {
        **(pod["metadata"].get("labels") or {}),
        _POD_NAME_LABEL: name,
        _POD_INDEX_LABEL: str(ordinal),
        REVISION_LABEL: revision["metadata"]["name"],
    }
    spec = pod["spec"] = {**pod["spec"], "hostname": name}
    if stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = stateful_set["spec"]["serviceName"]
    claims = [entry["metadata"]["name"] for entry in stateful_set["spec"].get("volumeClaimTemplates") or ()]
    if claims:
        kept = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
        own = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
        spec["volumes"] = own + kept
    return pod


def build_stateful_set_status(
    stateful_set: Object,
    pods: Mapping[int, Object],
    current: Object,
    update: Object,
    now: datetime,
    *,
    replaced: int = 0,
) -> Object:
    """Return the status of a set with these pods.

    Args:
        stateful_set: The stored StatefulSet.
        pods: Its pods by ordinal.
        current: The current revision.
        update: The update revision; it becomes the current one when all pods have it.
        now: The time of the reconcile.
        replaced: The number of pods of the current revision that this reconcile deleted for the update.
    """
    spec = stateful_set["spec"]
    alive = [pod for pod in pods.values() if not is_deleting(pod)]
    ready = [pod for pod in pods.values() if get_phase(pod) == "Running" and is_ready(pod)]
    available = sum(1 for pod in ready if is_available(pod, spec.get("minReadySeconds", 0), now))
    current_name, update_name = current["metadata"]["name"], update["metadata"]["name"]
    running = sum(1 for pod in alive if _get_revision(pod) == current_name) - replaced
    updated = sum(1 for pod in alive if _get_revision(pod) == update_name)
    if (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate" and (
        updated == len(ready) == len(pods) == spec.get("replicas", 1)
    ):
        running, current_name = updated, update_name
    status: Object = {"observedGeneration": stateful_set["metadata"]["generation"], "replicas": len(pods)}
    counts = {"readyReplicas": len(ready), "currentReplicas": running, "updatedReplicas": updated}
    status |= {name: count for name, count in counts.items() if count > 0}
    return status | {
        "currentRevision": current_name,
        "updateRevision": update_name,
        "collisionCount": (stateful_set.get("status") or {}).get("collisionCount", 0),
        "availableReplicas": available,
    }


def _build_claims(stateful_set: Object, pod: Object) -> list[Object]:
    labels = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        written: dict[str, Any] = template["metadata"]
        metadata = {**written, "name": f"{written['name']}-{pod['metadata']['name']}"}
        metadata["namespace"] = stateful_set["metadata"]["namespace"]
        metadata["labels"] = {**(written.get("labels") or {}), **labels}
        claims.append(
            {
                "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
                "kind": PERSISTENT_VOLUME_CLAIM.kind,
                "metadata": metadata,
                "spec": template["spec"],
            }
        )
    return claims


def _parse_ordinal(stateful_set: Object, pod: Object) -> int | None:
    parent, _, ordinal = str(pod["metadata"]["name"]).rpartition("-")
    return int(ordinal) if parent == stateful_set["metadata"]["name"] and ordinal.isdecimal() else None


def _get_revision(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))
