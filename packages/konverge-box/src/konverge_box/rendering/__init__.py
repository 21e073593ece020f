"""What a custom resource would come to, step by step, without a cluster.

In go a box, a custom resource, the objects that would be in the cluster and the answers of calls; out comes a
`Rendering`: what each step has made of what came before it, and why.

It is a pass like any other, over a context that writes nothing (`konverge.operator.dry_run`), and over a private API
server in memory that holds what was given: so defaults of schemas, and what a server refuses, are its own. Nothing is
called. Values of Secrets, and what is made of them, are masked. Equal input gives equal output.
"""

from konverge_box.rendering.renderer import DEFAULT_TIME, render_box
from konverge_box.rendering.rendering_model import (
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
