"""The verbs that write: each asks for the permit, and none is repeated that may have happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from konverge.client.object_list import selector_query
from konverge.client.request_bodies import (
    PATCH_CONTENT_TYPES,
    POD,
    FieldValidation,
    PatchType,
    Propagation,
    build_delete_options,
    build_eviction,
    build_scale_patch,
    build_write_query,
    is_still_present,
    strip_managed_fields,
)
from konverge.client.rest_client import RestClient
from konverge.client.sender import decode_object
from konverge.errors import BadRequestError
from konverge.kube import GroupVersionKind, Object, ObjectKey

__all__ = ["ApplyResponse", "WriteVerbs"]


@dataclass(frozen=True, slots=True)
class ApplyResponse:
    """The answer to a server-side apply."""

    object: Object
    created: bool


class WriteVerbs:
    """What can be done to objects; see `konverge.client.Client`."""

    _rest_client: RestClient

    async def create(
        self,
        obj: Object,
        *,
        field_manager: str = "",
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> Object:
        """Create the object; with a ``generateName`` and no name the server completes the name.

        Args:
            obj: The object.
            field_manager: Who is recorded as its fields' manager.
            dry_run: Let the server say what it would store, without storing it.
            field_validation: What the server does about fields that it does not know; None leaves that to it.

        Raises:
            konverge.errors.AlreadyExistsError: The name is taken.
        """
        mapping = await self._rest_client.mapping(GroupVersionKind.of(obj))
        path = mapping.build_path(namespace=ObjectKey.of(obj).namespace)
        query = build_write_query(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        async with self._rest_client.explain_not_found(mapping):
            answer = await self._rest_client.sender.send("POST", path, query=query, body=obj)
        return self._rest_client.sender.texts.remember_object(decode_object(answer, "POST", path))

    async def create_subresource(
        self, gvk: GroupVersionKind, key: ObjectKey, subresource: str, body: Object, *, dry_run: bool = False
    ) -> Object:
        """Send what an object's subresource takes, for example a ``TokenRequest`` to a ServiceAccount's ``token``."""
        query = build_write_query(dry_run=dry_run)
        return (
            await self._rest_client.request_object("POST", gvk, key, subresource=subresource, query=query, body=body)
        )[0]

    async def update(
        self,
        obj: Object,
        *,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion if it has one.

        The server's record of field managers stays as it is: what the object says in ``metadata.managedFields`` is not
        sent, since a partial record (as the cache holds it) would erase the rest.

        Args:
            obj: The object.
            subresource: Replace that instead.
            field_manager: Who is recorded as the manager of the fields that change.
            dry_run: Let the server say what it would store, without storing it.
            field_validation: What the server does about fields that it does not know; None leaves that to it.

        Raises:
            konverge.errors.ConflictError: It has changed since it was read.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        body = strip_managed_fields(obj)
        query = build_write_query(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        return (
            await self._rest_client.request_object("PUT", gvk, key, subresource=subresource, query=query, body=body)
        )[0]

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        body: Object | Sequence[Object],
        *,
        patch_type: PatchType,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> Object:
        """Change part of an object.

        Args:
            gvk: The kind.
            key: The object.
            body: The patch: a list of operations for ``json``, an object for the others.
            patch_type: How the server reads it. ``merge`` is for every kind and replaces lists as a whole;
                ``strategic`` merges them by their keys, as ``kubectl patch`` does, and is for built-in kinds only;
                ``json`` is a list of operations; ``apply`` is server-side apply. There is no default, since one body
                means another thing under each.
            subresource: Patch that instead, for example ``status``.
            field_manager: Who is recorded as the fields' manager.
            force: Take fields from other managers; for ``apply`` alone.
            dry_run: Let the server say what it would store, without storing it.
            field_validation: What the server does about fields that it does not know; None leaves that to it.
        """
        query = build_write_query(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        if patch_type == "apply":
            query["force"] = "true" if force else "false"
        headers = {"content-type": PATCH_CONTENT_TYPES[patch_type]}
        found, _ = await self._rest_client.request_object(
            "PATCH", gvk, key, subresource=subresource, query=query, headers=headers, body=body
        )
        return found

    async def apply(
        self,
        obj: Object,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> ApplyResponse:
        """Server-side apply: the object's fields become the manager's, those it no longer names are taken away.

        Args:
            obj: What the manager wants, and nothing else.
            field_manager: The manager.
            force: Take fields over from other managers instead of failing.
            subresource: Apply to that instead, for example ``status``.
            dry_run: Let the server say what it would store, without storing it.
            field_validation: What the server does about fields that it does not know; None leaves that to it.

        Raises:
            konverge.errors.ConflictError: Without force, another manager owns a field with another value.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        query = build_write_query(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        found, status = await self._rest_client.request_object(
            "PATCH",
            gvk,
            key,
            subresource=subresource,
            query=query | {"force": "true" if force else "false"},
            headers={"content-type": PATCH_CONTENT_TYPES["apply"]},
            body=strip_managed_fields(obj),
        )
        return ApplyResponse(found, created=status == 201)

    async def scale(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        replicas: int,
        *,
        resource_version: str | None = None,
        field_manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Set how many replicas an object shall have, through its ``scale`` subresource.

        Args:
            gvk: The kind.
            key: The object.
            replicas: How many.
            resource_version: Do it only if the object still is at that one.
            field_manager: Who is recorded as the manager of the field.
            dry_run: Let the server say what it would store, without storing it.

        Returns:
            The ``Scale`` (autoscaling/v1), which `get` with ``subresource="scale"`` reads.
        """
        return await self.patch(
            gvk,
            key,
            build_scale_patch(replicas, resource_version),
            patch_type="merge",
            subresource="scale",
            field_manager=field_manager,
            dry_run=dry_run,
        )

    async def evict(
        self,
        key: ObjectKey,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete a Pod if the disruption budgets allow it.

        Args:
            key: The Pod.
            uid: Only if it still is the one of that UID.
            grace_period_seconds: How long it has to end; None for what it says itself.
            dry_run: Only ask.

        Raises:
            konverge.errors.TooManyRequestsError: A budget forbids it now; `causes` say which.
            konverge.errors.NotFoundError: There is no such Pod.
        """
        options = build_delete_options(uid=uid, grace_period_seconds=grace_period_seconds)
        await self.create_subresource(POD, key, "eviction", build_eviction(key, options), dry_run=dry_run)

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object | None:
        """Delete an object.

        Args:
            gvk: The kind.
            key: The object.
            uid: Delete it only if it still is the one of that UID.
            resource_version: Delete it only if it has not changed since that one.
            propagation: What happens to the objects that it owns.
            grace_period_seconds: How long a Pod has to end; None for what it says itself.
            dry_run: Only ask whether it would be deleted.

        Returns:
            The object as it is now, when something (a finalizer, its grace period) still holds it; None when it is
            gone.

        Raises:
            konverge.errors.NotFoundError: There is none.
            konverge.errors.ConflictError: Another object has the name now, or it has changed.
        """
        options = build_delete_options(
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            dry_run=dry_run,
        )
        found, _ = await self._rest_client.request_object("DELETE", gvk, key, body=options)
        return found if found.get("kind") == gvk.kind and is_still_present(found) else None

    async def delete_collection(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        propagation: Propagation = "Background",
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete every object of a collection, or those that the selectors choose.

        The server deletes one after the other, so a failure leaves some of them; finalizers hold theirs as usual.

        Args:
            gvk: The kind.
            namespace: Where; needed for a namespaced kind, of which no server deletes in all namespaces at once.
            label_selector: Chooses by labels; empty for all.
            field_selector: Chooses by fields; empty for all.
            propagation: What happens to the objects that they own.
            grace_period_seconds: How long Pods have to end; None for what each says itself.
            dry_run: Only ask whether they would be deleted.

        Raises:
            konverge.errors.BadRequestError: A namespaced kind without a namespace.
        """
        mapping = await self._rest_client.mapping(gvk)
        if mapping.namespaced and not namespace:
            raise BadRequestError(f"deleting a collection of {gvk} needs a namespace: name one, and repeat it for more")
        options = build_delete_options(
            propagation=propagation, grace_period_seconds=grace_period_seconds, dry_run=dry_run
        )
        async with self._rest_client.explain_not_found(mapping):
            await self._rest_client.sender.send(
                "DELETE",
                mapping.build_path(namespace=namespace),
                query=selector_query(label_selector, field_selector),
                body=options,
            )
