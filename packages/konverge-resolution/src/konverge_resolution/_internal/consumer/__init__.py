"""Remote definitions in an operator's own functions: requested in one reconcile, available in a later one.

::

    operator = Operator("apps")
    definitions = DefinitionClient(operator)


    @operator.reconciles(App)
    async def reconcile(app: App, ctx: OwnerContext) -> None:
        async with ctx.flushing_status():
            template = await definitions.request("template", app.spec.template, ctx)
            ...

No worker waits for a fetch: its end requeues the owner. The content is copied into an immutable ConfigMap that the
owner owns. All later reconciles use this copy, even if the source changes: a run never changes its definition half-way.
To get another definition, change the reference or delete the copy. Requests (`konverge_resolution.requests`) or an
engine in the operator's process fetch the content.
"""

from konverge_resolution._internal.consumer.definition_client import CONDITION, DefinitionClient, DefinitionRecord
from konverge_resolution._internal.consumer.remote_definition import RemoteDefinition
from konverge_resolution._internal.consumer.requested_definition import RequestedDefinition

__all__ = ["CONDITION", "DefinitionClient", "DefinitionRecord", "RemoteDefinition", "RequestedDefinition"]
