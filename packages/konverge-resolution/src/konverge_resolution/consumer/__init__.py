"""Remote definitions in an operator's own functions: asked for in one pass, there in a later one, and then for good.

::

    operator = Operator("apps")
    definitions = Definitions(operator)


    @operator.reconciles(App)
    async def reconcile(app: App, ctx: OwnerContext) -> None:
        async with ctx.flushing_status():
            template = await definitions.ask("template", app.spec.template, ctx)
            ...

No worker waits while something is fetched: whoever fetches wakes the owner at the end. What came is copied into an
immutable ConfigMap that goes with the owner, and is what every later pass gets, whatever its source has by then: a run
never changes its definition half-way. Who wants another one changes the reference, or deletes the copy.

It is fetched by request (`konverge_resolution.requests`) or, with an engine of its own, by the operator's process.
"""

from konverge_resolution.consumer.definition_client import CONDITION, DefinitionClient, DefinitionRecord
from konverge_resolution.consumer.remote_definition import RemoteDefinition
from konverge_resolution.consumer.requested_definition import RequestedDefinition

__all__ = ["CONDITION", "DefinitionClient", "DefinitionRecord", "RemoteDefinition", "RequestedDefinition"]
