"""The simulated Deployment controller: one ReplicaSet per template, and the rollout between them.

One reconcile performs the steps of one reconcile of the real controller in the same order, so that a watcher sees the
same sequence: the new ReplicaSet, then the revision and ``Progressing``, then sizes and counts as pods become ready.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from konverge._internal.kube import Object, ObjectKey, build_owner_reference, is_deleting
from konverge.clock import Clock
from konverge.errors import AlreadyExistsError
from konverge_cluster._internal.embedded.controllers.builtin_kinds import DEPLOYMENT, POD, REPLICA_SET
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.content_hash import hash_content
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import (
    claim_objects,
    find_controller_key,
    list_affected_controllers,
)
from konverge_cluster._internal.embedded.controllers.deployment_status import (
    build_deployment_status,
    build_rollout_status,
    compute_seconds_to_deadline,
    has_deadline,
    is_complete,
)
from konverge_cluster._internal.embedded.controllers.pod_state import is_finished
from konverge_cluster._internal.embedded.controllers.rollout import (
    ReplicaSetSize,
    RolloutLimits,
    compute_new_size,
    compute_proportional_sizes,
    compute_rolling_sizes,
    read_replicas,
)
from konverge_cluster._internal.embedded.controllers.workload_conditions import (
    build_deployment_condition,
    find_condition,
    list_conditions,
    with_condition,
)

__all__ = ["DeploymentController"]

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
# Annotations that a Deployment does not copy to its ReplicaSets.
_OWN_ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    }
)


@dataclass
class _Rollout:
    """A Deployment and its ReplicaSets during a reconcile; each write replaces one of them."""

    deployment: Object
    new: Object | None
    old: list[Object]

    @property
    def all(self) -> list[Object]:
        """All ReplicaSets, the new one last."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def active(self) -> list[Object]:
        """The ReplicaSets with at least one desired pod."""
        return [replica_set for replica_set in self.all if read_replicas(replica_set) > 0]


class DeploymentController:
    """The controller. Its keys are those of Deployments."""

    name = "deployment-controller"
    watches = frozenset({DEPLOYMENT.group_kind, REPLICA_SET.group_kind, POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a Deployment, or of the controller of a ReplicaSet or of a deleted last pod (Recreate)."""
        if notice.kind == DEPLOYMENT.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        if notice.kind == POD.group_kind:
            return self._keys_for_pod(notice)
        return list_affected_controllers(self._view, notice, DEPLOYMENT)

    def reconcile(self, key: Hashable) -> float | None:
        """Perform the next step of the rollout and write the status if it changed."""
        assert isinstance(key, ObjectKey)
        deployment = self._view.get(DEPLOYMENT, key)
        if deployment is None:
            return None
        rollout = self._read_rollout(deployment)
        spec = deployment["spec"]
        if is_deleting(deployment):
            self._sync_revision(rollout)
            self._write_counts(rollout)
            return None
        self._record_pause(rollout)
        if spec.get("paused"):
            self._sync_revision(rollout)
            self._scale(rollout)
            self._clean_up(rollout)
            self._write_counts(rollout)
            return None
        if self._was_resized(rollout):
            self._sync_revision(rollout)
            self._scale(rollout)
            self._write_counts(rollout)
            return None
        if (spec.get("strategy") or {}).get("type") == "Recreate":
            return self._recreate(rollout)
        return self._roll_update(rollout)

    def _keys_for_pod(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        if notice.type != "DELETED":
            return ()
        set_key = find_controller_key(notice.new, REPLICA_SET)
        replica_set = self._view.get(REPLICA_SET, set_key) if set_key is not None else None
        key = find_controller_key(replica_set, DEPLOYMENT) if replica_set is not None else None
        deployment = self._view.get(DEPLOYMENT, key) if key is not None else None
        if key is None or deployment is None or (deployment["spec"].get("strategy") or {}).get("type") != "Recreate":
            return ()
        return (key,)

    def _read_rollout(self, deployment: Object) -> _Rollout:
        claimed = claim_objects(self._view, self._writer, deployment, REPLICA_SET, deployment["spec"]["selector"])
        sets = sorted(claimed, key=_age_order)
        template = deployment["spec"]["template"]
        new = next(
            (replica_set for replica_set in sets if _without_hash(replica_set["spec"]["template"]) == template), None
        )
        return _Rollout(deployment, new, [replica_set for replica_set in sets if replica_set is not new])

    def _record_pause(self, rollout: _Rollout) -> None:
        """Report in ``Progressing`` that the rollout was paused or resumed, which restarts the deadline."""
        deployment = rollout.deployment
        conditions = list_conditions(deployment)
        progressing = find_condition(conditions, "Progressing")
        reason = progressing["reason"] if progressing is not None else ""
        if not has_deadline(deployment) or reason == "ProgressDeadlineExceeded":
            return
        paused = bool(deployment["spec"].get("paused"))
        if paused == (reason == "DeploymentPaused"):
            return
        word = "paused" if paused else "resumed"
        condition = build_deployment_condition(
            "Progressing", "Unknown", f"Deployment{word.capitalize()}", f"Deployment is {word}", self._clock.now()
        )
        self._write_conditions(rollout, with_condition(conditions, condition))

    def _sync_revision(self, rollout: _Rollout) -> None:
        """Update the revision and the copied annotations of the new ReplicaSet if it exists."""
        if rollout.new is None:
            return
        deployment, replica_set = rollout.deployment, rollout.new
        min_ready = deployment["spec"].get("minReadySeconds", 0)
        annotations = _build_annotations(deployment, replica_set, _compute_next_revision(rollout.old))
        if annotations != _read_annotations(replica_set) or replica_set["spec"].get("minReadySeconds", 0) != min_ready:
            spec = {**replica_set["spec"], "minReadySeconds": min_ready}
            rollout.new = self._writer.update(_with_annotations({**replica_set, "spec": spec}, annotations))
            return
        conditions = list_conditions(deployment)
        if has_deadline(deployment) and find_condition(conditions, "Progressing") is None:
            conditions = with_condition(
                conditions,
                build_deployment_condition(
                    "Progressing",
                    "True",
                    "FoundNewReplicaSet",
                    f'Found new replica set "{replica_set["metadata"]["name"]}"',
                    self._clock.now(),
                ),
            )
        self._write_conditions(rollout, conditions, revision=annotations[REVISION])

    def _create_new(self, rollout: _Rollout) -> bool:
        """Create the ReplicaSet of the current template; return True if it exists now."""
        deployment = rollout.deployment
        metadata, spec = deployment["metadata"], deployment["spec"]
        collisions = (deployment.get("status") or {}).get("collisionCount", 0)
        template_hash = hash_content(spec["template"], collisions)
        name = f"{metadata['name'][: 253 - 1 - len(template_hash)]}-{template_hash}"
        limits = RolloutLimits.from_spec(spec)
        written = spec["template"].get("metadata") or {}
        labels = {**(written.get("labels") or {}), HASH_LABEL: template_hash}
        selector = {**spec["selector"]}
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: template_hash}
        total = sum(read_replicas(replica_set) for replica_set in rollout.old)
        recreate = (spec.get("strategy") or {}).get("type") == "Recreate"
        replicas = limits.desired if recreate else compute_new_size(limits, ReplicaSetSize(name, 0), total)
        desired_set: Object = {
            "apiVersion": REPLICA_SET.api_version,
            "kind": REPLICA_SET.kind,
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": labels,
                "ownerReferences": [build_owner_reference(deployment)],
            },
            "spec": {
                "replicas": replicas,
                "selector": selector,
                "template": {**spec["template"], "metadata": {**written, "labels": labels}},
            },
        }
        if spec.get("minReadySeconds"):
            desired_set["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        revision = _compute_next_revision(rollout.old)
        annotations = _build_annotations(deployment, desired_set, revision) | _build_size_annotations(limits)
        try:
            rollout.new = self._writer.create(_with_annotations(desired_set, annotations))
        except AlreadyExistsError:
            # Another template has the same hash, or another owner has the ReplicaSet: the next reconcile uses another
            # name.
            status = {**(deployment.get("status") or {}), "collisionCount": collisions + 1}
            rollout.deployment = self._writer.update_status(deployment, status)
            return False
        conditions = list_conditions(deployment)
        if has_deadline(deployment):
            message = f'Created new replica set "{name}"'
            condition = build_deployment_condition(
                "Progressing", "True", "NewReplicaSetCreated", message, self._clock.now()
            )
            conditions = with_condition(conditions, condition)
        self._write_conditions(rollout, conditions, revision=str(revision))
        return True

    def _roll_update(self, rollout: _Rollout) -> float | None:
        self._sync_revision(rollout)
        if rollout.new is None and not self._create_new(rollout):
            return None
        assert rollout.new is not None
        limits = RolloutLimits.from_spec(rollout.deployment["spec"])
        active_old = [_read_size(replica_set) for replica_set in rollout.old if read_replicas(replica_set) > 0]
        sizes = compute_rolling_sizes(limits, _read_size(rollout.new), active_old)
        self._resize(rollout, sizes)
        if not sizes and is_complete(rollout.deployment, rollout.deployment.get("status") or {}):
            self._clean_up(rollout)
        return self._write_progress(rollout)

    def _recreate(self, rollout: _Rollout) -> float | None:
        self._sync_revision(rollout)
        doomed = {replica_set["metadata"]["name"]: 0 for replica_set in rollout.old if read_replicas(replica_set) > 0}
        if doomed:
            self._resize(rollout, doomed)
            return self._write_progress(rollout)
        if self._has_old_pods(rollout):
            return self._write_progress(rollout)
        if rollout.new is None and not self._create_new(rollout):
            return None
        assert rollout.new is not None
        self._resize(
            rollout, {rollout.new["metadata"]["name"]: RolloutLimits.from_spec(rollout.deployment["spec"]).desired}
        )
        if is_complete(rollout.deployment, rollout.deployment.get("status") or {}):
            self._clean_up(rollout)
        return self._write_progress(rollout)

    def _has_old_pods(self, rollout: _Rollout) -> bool:
        return any(
            not is_finished(pod)
            for replica_set in rollout.old
            for pod in self._view.list_controlled(POD, replica_set["metadata"]["uid"])
        )

    def _was_resized(self, rollout: _Rollout) -> bool:
        """Return True if the desired number changed since the active ReplicaSets were sized."""
        desired = str(rollout.deployment["spec"].get("replicas", 1))
        return any(
            _read_annotations(replica_set).get(DESIRED_REPLICAS, desired) != desired for replica_set in rollout.active
        )

    def _scale(self, rollout: _Rollout) -> None:
        """Adjust to a changed number of replicas without progress of the rollout."""
        limits = RolloutLimits.from_spec(rollout.deployment["spec"])
        active = rollout.active
        if len(active) <= 1:
            target = active[0] if active else rollout.new or (rollout.old[-1] if rollout.old else None)
            if target is not None and read_replicas(target) != limits.desired:
                self._resize(rollout, {target["metadata"]["name"]: limits.desired})
            return
        if rollout.new is not None and _is_at_full_size(limits, rollout.new):
            self._resize(
                rollout,
                {replica_set["metadata"]["name"]: 0 for replica_set in rollout.old if read_replicas(replica_set) > 0},
            )
            return
        if (rollout.deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            return
        newest_first = [_read_size(replica_set) for replica_set in sorted(active, key=_age_order, reverse=True)]
        before = (rollout.deployment.get("status") or {}).get("replicas", 0)
        self._resize(rollout, compute_proportional_sizes(limits, newest_first, before), renew=True)

    def _resize(self, rollout: _Rollout, sizes: dict[str, int], *, renew: bool = False) -> None:
        """Write new sizes and their desired number; with `renew` also if only that number changed."""
        noted = _build_size_annotations(RolloutLimits.from_spec(rollout.deployment["spec"]))

        def write_size(replica_set: Object) -> Object:
            size = sizes.get(replica_set["metadata"]["name"])
            if size is None:
                return replica_set
            outdated = renew and any(_read_annotations(replica_set).get(name) != value for name, value in noted.items())
            if size == read_replicas(replica_set) and not outdated:
                return replica_set
            resized = {**replica_set, "spec": {**replica_set["spec"], "replicas": size}}
            return self._writer.update(_with_annotations(resized, _read_annotations(replica_set) | noted))

        rollout.old = [write_size(replica_set) for replica_set in rollout.old]
        if rollout.new is not None:
            rollout.new = write_size(rollout.new)

    def _clean_up(self, rollout: _Rollout) -> None:
        """Delete the oldest old ReplicaSets beyond ``revisionHistoryLimit``."""
        limit = rollout.deployment["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        alive = sorted((replica_set for replica_set in rollout.old if not is_deleting(replica_set)), key=_read_revision)
        for replica_set in alive[: max(0, len(alive) - limit)]:
            status = replica_set.get("status") or {}
            observed = status.get("observedGeneration", 0) >= replica_set["metadata"]["generation"]
            if read_replicas(replica_set) == 0 and status.get("replicas", 0) == 0 and observed:
                self._writer.delete(replica_set)

    def _write_conditions(self, rollout: _Rollout, conditions: list[Object], *, revision: str | None = None) -> None:
        deployment = rollout.deployment
        if conditions != list_conditions(deployment) or revision not in (
            None,
            _read_annotations(deployment).get(REVISION),
        ):
            if revision is not None:
                deployment = _with_annotations(deployment, _read_annotations(deployment) | {REVISION: revision})
            status = {**(deployment.get("status") or {}), **({"conditions": conditions} if conditions else {})}
            rollout.deployment = self._writer.update_status(deployment, status)

    def _write_counts(self, rollout: _Rollout) -> None:
        status = build_deployment_status(rollout.deployment, rollout.all, rollout.new, self._clock.now())
        if status != (rollout.deployment.get("status") or {}):
            self._writer.update_status(rollout.deployment, status)

    def _write_progress(self, rollout: _Rollout) -> float | None:
        now = self._clock.now()
        status = build_rollout_status(rollout.deployment, rollout.all, rollout.new, now)
        if status != (rollout.deployment.get("status") or {}):
            self._writer.update_status(rollout.deployment, status)
            return None  # the write enqueues this key again
        return compute_seconds_to_deadline(rollout.deployment, status, now)


def _is_at_full_size(limits: RolloutLimits, replica_set: Object) -> bool:
    available = (replica_set.get("status") or {}).get("availableReplicas", 0)
    noted = _read_annotations(replica_set).get(DESIRED_REPLICAS)
    return read_replicas(replica_set) == limits.desired == available and noted == str(limits.desired)


def _read_size(replica_set: Object) -> ReplicaSetSize:
    return ReplicaSetSize(
        name=replica_set["metadata"]["name"],
        replicas=read_replicas(replica_set),
        available=(replica_set.get("status") or {}).get("availableReplicas", 0),
        previous_max_replicas=_parse_number(_read_annotations(replica_set).get(MAX_REPLICAS)),
    )


def _build_size_annotations(limits: RolloutLimits) -> dict[str, str]:
    return {DESIRED_REPLICAS: str(limits.desired), MAX_REPLICAS: str(limits.max_replicas)}


def _build_annotations(deployment: Object, replica_set: Object, revision: int) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet: those of the Deployment, its revision and its earlier revisions."""
    copied = {name: value for name, value in _read_annotations(deployment).items() if name not in _OWN_ANNOTATIONS}
    annotations = {**_read_annotations(replica_set), **copied}
    held = annotations.get(REVISION)
    if _parse_number(held) < revision:
        if held is not None:
            annotations[REVISION_HISTORY] = ",".join(filter(None, (annotations.get(REVISION_HISTORY), held)))
        annotations[REVISION] = str(revision)
    return annotations


def _compute_next_revision(old: Sequence[Object]) -> int:
    return max((_read_revision(replica_set) for replica_set in old), default=0) + 1


def _read_revision(replica_set: Object) -> int:
    return _parse_number(_read_annotations(replica_set).get(REVISION))


def _parse_number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _read_annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _with_annotations(obj: Object, annotations: dict[str, str]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _without_hash(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _age_order(replica_set: Object) -> tuple[str, int, str]:
    # Several can be created within one second; then the revision decides the order.
    return replica_set["metadata"]["creationTimestamp"], _read_revision(replica_set), replica_set["metadata"]["name"]
