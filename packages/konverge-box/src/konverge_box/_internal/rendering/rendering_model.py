"""The model of a rendering: plain values, for programs and for people."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from konverge._internal.kube import Object

__all__ = ["RenderedChange", "RenderedGroup", "RenderedItem", "RenderedObject", "RenderedStep", "Rendering"]


class _RenderingStruct(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The base of all parts; empty parts are left out of the output."""


class RenderedChange(_RenderingStruct, frozen=True, kw_only=True):
    """A field that a step has changed; an absent side means that the field did not exist on it."""

    path: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


class RenderedObject(_RenderingStruct, frozen=True, kw_only=True):
    """An object that a step has decided on.

    Args:
        path: The path of its entry in the file.
        object: Its identity, for example ``apps/v1/Deployment/default/web``.
        decision: The action: apply, leave, skip, delete.
        why: The explanation of the decision.
        blocked: The unmet condition that it waits for.
        problem: The error that prevents its rendering.
        manifest: The object to apply; the values of Secrets are masked.
    """

    path: str
    object: str
    decision: str
    why: str
    blocked: str = ""
    problem: str = ""
    manifest: Object | None = None


class RenderedGroup(_RenderingStruct, frozen=True, kw_only=True):
    """A group with its objects in the order of their creation.

    Args:
        name: The name of the component.
        condition: The type of the condition that reports its state.
        is_off: Whether its conditions do not hold.
        is_suspended: Whether its workloads are scaled down.
        waits_for: The conditions of the groups that it waits for.
        objects: The objects of the group.
    """

    name: str
    condition: str
    is_off: bool = False
    is_suspended: bool = False
    waits_for: tuple[str, ...] = ()
    objects: tuple[RenderedObject, ...] = ()


class RenderedItem(_RenderingStruct, frozen=True, kw_only=True):
    """An item outside of the cluster that a provider would create; its spec contains no values of Secrets."""

    path: str
    provider: str
    kind: str
    name: str
    is_skipped: bool = False
    spec: Any = None


class RenderedStep(_RenderingStruct, frozen=True, kw_only=True):
    """The result of one step.

    Args:
        step: The name of the step.
        error: The error with its path in the file; earlier results are in the steps before.
        changes: For normalize and mutation: the fields of the custom resource that changed.
        object: For the first step and those that changed it: the custom resource as later steps read it.
        denied: For validation: the violated rules that deny, each with its field.
        warned: For validation: the violated rules that warn.
        values: For cross and external, the values that expressions read; for status, its fields.
        calls: For external: the request of each call, with its outcome.
        groups: For onCreate and onReconcile: the groups.
        items: For providers: the items.
        notes: Problems that do not stop the reconcile.
    """

    step: str
    error: str = ""
    changes: tuple[RenderedChange, ...] = ()
    object: Object | None = None
    denied: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    calls: dict[str, str] = {}
    values: dict[str, Any] | None = None
    groups: tuple[RenderedGroup, ...] = ()
    items: tuple[RenderedItem, ...] = ()
    notes: tuple[str, ...] = ()


class Rendering(_RenderingStruct, frozen=True, kw_only=True):
    """All steps of a reconcile, with its result.

    Args:
        box: The name of the box.
        crd: The name of the custom resource in the file.
        object: Its identity.
        time: The time of the reconcile.
        result: ``ok``, ``denied`` or ``failed``.
        steps: The steps in order.
        conditions: The conditions of the first reconcile, without times: nothing is ready yet.
    """

    box: str
    crd: str
    object: str
    time: str
    result: Literal["ok", "denied", "failed"]
    steps: tuple[RenderedStep, ...]
    conditions: tuple[Object, ...] = ()
