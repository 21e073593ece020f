"""What a rendering is: plain values, for programs as for people."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from konverge.kube import Object

__all__ = ["RenderedChange", "RenderedGroup", "RenderedItem", "RenderedObject", "RenderedStep", "Rendering"]


class _RenderingStruct(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What all parts share: what there is not is not shown."""


class RenderedChange(_RenderingStruct, frozen=True, kw_only=True):
    """A field that a step has changed; a side that is absent had, or has, no such field."""

    path: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


class RenderedObject(_RenderingStruct, frozen=True, kw_only=True):
    """An object that a step has decided on.

    Args:
        path: What of the file it was made from.
        object: Its identity, for example ``apps/v1/Deployment/default/web``.
        decision: What would be done: apply, leave, skip, delete.
        why: For people.
        blocked: What it waits for.
        problem: Why it cannot be rendered.
        manifest: What would be applied; the values of Secrets are masked.
    """

    path: str
    object: str
    decision: str
    why: str
    blocked: str = ""
    problem: str = ""
    manifest: Object | None = None


class RenderedGroup(_RenderingStruct, frozen=True, kw_only=True):
    """A group, with its objects in the order in which they are made.

    Args:
        name: The component's.
        condition: The type of the condition through which it reports.
        is_off: Its conditions do not hold.
        is_suspended: Its workloads are taken down.
        waits_for: The conditions of the groups that come first.
        objects: One by one.
    """

    name: str
    condition: str
    is_off: bool = False
    is_suspended: bool = False
    waits_for: tuple[str, ...] = ()
    objects: tuple[RenderedObject, ...] = ()


class RenderedItem(_RenderingStruct, frozen=True, kw_only=True):
    """Something outside of the cluster that would be asked for; values of Secrets are not in its spec."""

    path: str
    provider: str
    kind: str
    name: str
    is_skipped: bool = False
    spec: Any = None


class RenderedStep(_RenderingStruct, frozen=True, kw_only=True):
    """What one step has made of what came before it.

    Args:
        step: Its name.
        error: Why it failed, with the path in the file; what came before is in the steps before.
        changes: Of normalize and mutation: the fields of the custom resource that are others now.
        object: Of the first step, and of those that changed it: the custom resource as later steps see it.
        denied: Of validation: rules that deny, each with its field.
        warned: Of validation: rules that warn.
        values: Of cross and external, what expressions see; of status, its fields.
        calls: Of external: whom each call asks, whether it was answered or not.
        groups: Of onCreate and onReconcile.
        items: Of providers.
        notes: What went wrong that stops nothing.
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
    """All steps of a pass, and what it says in the end.

    Args:
        box: The box's name.
        crd: What the file calls the custom resource.
        object: Its identity.
        time: The time of the pass.
        result: ``ok``, ``denied`` or ``failed``.
        steps: In their order.
        conditions: Those that the pass reports first, without their times: nothing is ready yet.
    """

    box: str
    crd: str
    object: str
    time: str
    result: Literal["ok", "denied", "failed"]
    steps: tuple[RenderedStep, ...]
    conditions: tuple[Object, ...] = ()
