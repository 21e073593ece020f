"""The write verbs of a client: each requires the permit, and none is repeated if it may have succeeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from konverge._internal.client.object_list import selector_query
from konverge._internal.client.request_bodies import (
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
from konverge._internal.client.rest_client import RestClient
from konverge._internal.client.sender import decode_object
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.errors import BadRequestError

__all__ = ["ApplyResponse", "WriteVerbs"]


@dataclass(frozen=True, slots=True)
class ApplyResponse:
    """The response to a server-side apply."""

    object: Object
    created: bool


class WriteVerbs:
    """The write verbs of `konverge.client.Client`."""

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
            field_manager: The manager of its fields.
            dry_run: Whether the server only returns the object without storing it.
            field_validation: The server's reaction to unknown fields; None for its default.

        Raises:
            konverge.errors.AlreadyExistsError: An object of that name exists.
        """
        mapping = await self._rest_client.mapping(GroupVersionKind.of(obj))
        path = mapping.build_path(namespace=ObjectKey.of(obj).namespace)
        query = build_write_query(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        async with self._rest_client.explain_not_found(mapping):
            response = await self._rest_client.sender.send("POST", path, query=query, body=obj)
        return self._rest_client.sender.texts.remember_object(decode_object(response, "POST", path))

    async def create_subresource(
        self, gvk: GroupVersionKind, key: ObjectKey, subresource: str, body: Object, *, dry_run: bool = False
    ) -> Object:
        """Create a subresource of an object, for example a ``TokenRequest`` for the ``token`` of a ServiceAccount."""
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

        The server keeps its record of field managers: ``metadata.managedFields`` of the object is not sent, because a
        partial record (as in the cache) would erase the rest.

        Args:
            obj: The object.
            subresource: The subresource to replace instead.
            field_manager: The manager of the changed fields.
            dry_run: Whether the server only returns the object without storing it.
            field_validation: The server's reaction to unknown fields; None for its default.

        Raises:
            konverge.errors.ConflictError: The object has changed since it was read.
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
            patch_type: The type of the patch. ``merge`` works for every kind and replaces lists as a whole;
                ``strategic`` merges them by their keys, like ``kubectl patch``, and works only for built-in kinds;
                ``json`` is a list of operations; ``apply`` is server-side apply. There is no default, because the same
                body has a different meaning for each type.
            subresource: The subresource to patch instead, for example ``status``.
            field_manager: The manager of the fields.
            force: Whether to take fields over from other managers; only for ``apply``.
            dry_run: Whether the server only returns the object without storing it.
            field_validation: The server's reaction to unknown fields; None for its default.
        """
        query = build_write_query(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        if patch_type == "apply":
            query["force"] = "true" if force else "false"
        headers = {"content-type": PATCH_CONTENT_TYPES[patch_type]}
        patched, _ = await self._rest_client.request_object(
            "PATCH", gvk, key, subresource=subresource, query=query, headers=headers, body=body
        )
        return patched

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
        """Apply the object: the manager owns its fields, and fields that it no longer applies are removed.

        Args:
            obj: The object with exactly the desired fields.
            field_manager: The field manager.
            force: Whether to take fields over from other managers instead of raising an error.
            subresource: The subresource to apply to instead, for example ``status``.
            dry_run: Whether the server only returns the object without storing it.
            field_validation: The server's reaction to unknown fields; None for its default.

        Raises:
            konverge.errors.ConflictError: Without force, another manager owns a field with another value.
        """
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        query = build_write_query(field_manager=field_manager, dry_run=dry_run, field_validation=field_validation)
        stored, status = await self._rest_client.request_object(
            "PATCH",
            gvk,
            key,
            subresource=subresource,
            query=query | {"force": "true" if force else "false"},
            headers={"content-type": PATCH_CONTENT_TYPES["apply"]},
            body=strip_managed_fields(obj),
        )
        return ApplyResponse(stored, created=status == 201)

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
        """Set the number of replicas of an object, through its ``scale`` subresource.

        Args:
            gvk: The kind.
            key: The object.
            replicas: The number of replicas.
            resource_version: The version that the object must still have; None for any.
            field_manager: The manager of the field.
            dry_run: Whether the server only returns the scale without storing it.

        Returns:
            The ``Scale`` (autoscaling/v1), which `get` with ``subresource="scale"`` also returns.
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
        """Delete a Pod if its disruption budgets permit it.

        Args:
            key: The Pod.
            uid: The UID that the Pod must still have; None for any.
            grace_period_seconds: The grace period; None for that of the Pod.
            dry_run: Whether the server only checks the request.

        Raises:
            konverge.errors.TooManyRequestsError: A budget forbids it now; `causes` contains the budget.
            konverge.errors.NotFoundError: The Pod does not exist.
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
            uid: The UID that the object must still have; None for any.
            resource_version: The version that the object must still have; None for any.
            propagation: The propagation to the objects that it owns.
            grace_period_seconds: The grace period of a Pod; None for its own.
            dry_run: Whether the server only checks the request.

        Returns:
            The present object if a finalizer or its grace period delays the removal; None if it was removed.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
            konverge.errors.ConflictError: The name belongs to another object now, or the object has changed.
        """
        options = build_delete_options(
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            dry_run=dry_run,
        )
        response, _ = await self._rest_client.request_object("DELETE", gvk, key, body=options)
        return response if response.get("kind") == gvk.kind and is_still_present(response) else None

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
        """Delete every object of a collection, or only those that match the selectors.

        The server deletes one object after the other, so a failure leaves the rest; finalizers delay removals as usual.

        Args:
            gvk: The kind.
            namespace: The namespace; required for a namespaced kind, because no server deletes in all namespaces at
                once.
            label_selector: The labels to select; empty for all.
            field_selector: The fields to select; empty for all.
            propagation: The propagation to the objects that they own.
            grace_period_seconds: The grace period of Pods; None for their own.
            dry_run: Whether the server only checks the request.

        Raises:
            konverge.errors.BadRequestError: A namespaced kind without a namespace.
        """
        mapping = await self._rest_client.mapping(gvk)
        if mapping.namespaced and not namespace:
            raise BadRequestError(
                f"{gvk}: cannot delete a collection in all namespaces: expected a namespace; call it once for each"
            )
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
