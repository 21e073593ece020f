"""The history of a workload's template as ControllerRevisions: one for each template."""

from __future__ import annotations

from collections.abc import Collection

from konverge._internal.kube import Object, build_owner_reference
from konverge.errors import AlreadyExistsError
from konverge_cluster._internal.embedded.controllers.builtin_kinds import CONTROLLER_REVISION
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterView
from konverge_cluster._internal.embedded.controllers.content_hash import hash_content
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import claim_objects

__all__ = ["RevisionHistory", "get_template"]


def get_template(revision: Object) -> Object:
    """Return the pod template of a revision."""
    template: Object = revision["data"]["spec"]["template"]
    return {name: value for name, value in template.items() if name != "$patch"}


class RevisionHistory:
    """The revision histories of one kind of workload.

    Args:
        view: The view of the cluster.
        writer: The client that writes the revisions.
        hash_label: The label for the hash of a revision.
    """

    def __init__(self, view: ClusterView, writer: ControllerClient, hash_label: str) -> None:
        self._view = view
        self._writer = writer
        self._hash_label = hash_label

    def list_revisions(self, owner: Object) -> list[Object]:
        """Return the revisions of a workload, oldest first."""
        revisions = claim_objects(self._view, self._writer, owner, CONTROLLER_REVISION, owner["spec"]["selector"])
        return sorted(revisions, key=lambda revision: (revision["revision"], revision["metadata"]["name"]))

    def ensure_current(self, owner: Object, history: list[Object]) -> Object:
        """Return the revision of the current template: create it, or move an older equal one to the end."""
        data = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
        following = history[-1]["revision"] + 1 if history else 1
        equal = next((revision for revision in reversed(history) if revision["data"] == data), None)
        if equal is None:
            return self._create(owner, data, following)
        if equal is history[-1]:
            return equal
        return self._writer.update({**equal, "revision": following})

    def delete_unused(self, owner: Object, history: list[Object], used: Collection[str]) -> None:
        """Delete the oldest unused revisions beyond ``revisionHistoryLimit``."""
        unused = [revision for revision in history if revision["metadata"]["name"] not in used]
        for revision in unused[: max(0, len(unused) - owner["spec"].get("revisionHistoryLimit", 10))]:
            self._writer.delete(revision)

    def _create(self, owner: Object, data: Object, number: int) -> Object:
        metadata = owner["metadata"]
        labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
        collisions = (owner.get("status") or {}).get("collisionCount", 0)
        while True:
            data_hash = hash_content(data, collisions)
            desired: Object = {
                "apiVersion": CONTROLLER_REVISION.api_version,
                "kind": CONTROLLER_REVISION.kind,
                "metadata": {
                    "name": f"{metadata['name'][:223]}-{data_hash}",
                    "namespace": metadata["namespace"],
                    "labels": {**labels, self._hash_label: data_hash},
                    "ownerReferences": [build_owner_reference(owner)],
                },
                "data": data,
                "revision": number,
            }
            if metadata.get("annotations"):
                desired["metadata"]["annotations"] = metadata["annotations"]
            try:
                return self._writer.create(desired)
            except AlreadyExistsError:
                collisions += 1
