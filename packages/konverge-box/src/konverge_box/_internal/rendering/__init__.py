"""The result of reconciling a custom resource, step by step, without a cluster.

The input is a box, a custom resource, the objects in the cluster and the responses to calls. The output is a
`Rendering`: the result of each step and the reasons for it.

It is a normal reconcile with a context that writes nothing (`konverge.operator.dry_run`), against a private API server
in memory with the given objects: defaults of schemas and rejections come from that server. No call is sent. Values of
Secrets, and values computed from them, are masked. Equal input gives equal output.
"""

from konverge_box._internal.rendering.renderer import DEFAULT_TIME, render_box
from konverge_box._internal.rendering.rendering_model import (
    RenderedChange,
    RenderedGroup,
    RenderedItem,
    RenderedObject,
    RenderedStep,
    Rendering,
)

__all__ = [
    "DEFAULT_TIME",
    "RenderedChange",
    "RenderedGroup",
    "RenderedItem",
    "RenderedObject",
    "RenderedStep",
    "Rendering",
    "render_box",
]
