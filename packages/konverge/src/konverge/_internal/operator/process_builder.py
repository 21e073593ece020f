"""Construction of a process from the registrations and the options: it builds all parts and connects them.

The servers and the permission check are imported only if a run requires them: the servers take a tenth of the memory of
an operator with few objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from konverge._internal.cancellation import await_shielded
from konverge._internal.client import Client
from konverge._internal.client.request_observer import RequestObserver
from konverge._internal.component import ConditionMetrics, Diagnosis, EventRecorder, TimeLimit
from konverge._internal.crd import find_definition
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.operator.annotated_conditions import build_annotation_name
from konverge._internal.operator.author_reconciler import AuthorReconciler
from konverge._internal.operator.component_factories import list_component_kinds
from konverge._internal.operator.deletion_reconciler import DeletionReconciler
from konverge._internal.operator.deletion_waves import build_wave_finalizer_name, delete_components, is_never_needed
from konverge._internal.operator.limited_functions import limit_function, limit_indexes, limit_watch
from konverge._internal.operator.owner_context import Companion, OperatorRun
from konverge._internal.operator.owner_events import OwnerEventReporter
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge._internal.operator.registrations import OperatorRegistrations, OwnerRegistration, TaskRegistration
from konverge._internal.operator.run_options import RunOptions
from konverge._internal.operator.task_functions import TaskEventReporter, TaskFunction
from konverge._internal.runtime import Finalizer, OwnerAssignment, OwnerKind, OwnerTask, Process, build_assignment
from konverge._internal.runtime.background import background_task
from konverge._internal.runtime.blocked_loop import BlockedLoopWatchdog
from konverge._internal.runtime.process import Service
from konverge._internal.runtime.start_steps import StartSteps, describe_failure
from konverge._internal.runtime.tracing import SpanRecorder
from konverge._internal.runtime.webhooks import register, unregister
from konverge.clock import Clock, Entropy, SystemClock
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    KindNotServedError,
    NotFoundError,
    StartError,
    UntrustedServerError,
)

if TYPE_CHECKING:
    from konverge._internal.runtime.event_recorder import ClusterEventRecorder
    from konverge._internal.runtime.observability import Metrics
    from konverge._internal.runtime.observability.webhook_metrics import ResourceMetrics
    from konverge._internal.runtime.webhooks import WebhookServer

__all__ = ["build_process"]

_log = logging.getLogger("konverge.operator")


def build_process(
    registered: OperatorRegistrations, client: Client, options: RunOptions, *, clock: Clock, entropy: Entropy
) -> Process:
    """Build the process of one run.

    Args:
        registered: The registrations of the author.
        client: The cluster.
        options: The options of the run.
        clock: The time.
        entropy: The randomness.

    Raises:
        BuildError: The registrations are inconsistent.
        ConfigurationError: An option requires a package that is not installed.
    """
    registered.validate()
    run = _ProcessParts(registered, client, options, clock, entropy)
    return Process(
        [run.build_owner_kind(registration) for registration in registered.classes],
        run.client,
        clock=clock,
        entropy=entropy,
        namespaces=options.namespaces,
        grace=options.grace,
        watches=[limit_watch(run.limit, watch) for watch in registered.watches],
        indexes=limit_indexes(run.limit, registered.indexes),
        cache_options=registered.cache_options,
        assignment=run.assignment,
        services=run.list_services(),
        writing_services=run.list_writing_services(),
        observe=lambda name, workers: None if run.metrics is None else run.metrics.observe_controller(name),
        tracer=run.tracing,
        start=run.start,
        tasks=run.build_tasks(),
    )


class _ProcessParts:
    """The parts of one run."""

    def __init__(
        self, registered: OperatorRegistrations, client: Client, options: RunOptions, clock: Clock, entropy: Entropy
    ) -> None:
        self._registered = registered
        self._options = options
        self._clock = clock
        self._entropy = entropy
        self.start = StartSteps(clock=clock, entropy=entropy, timeout=options.start_timeout)
        self.metrics: Metrics | None = None
        if options.observability is not None and options.observability.serves_metrics:
            from konverge._internal.runtime.observability import Metrics

            self.metrics = Metrics(clock=clock, per_owner_conditions=options.observability.per_owner_conditions)
        self.tracing = SpanRecorder(clock=clock) if options.traces else None
        observers: list[RequestObserver] = []
        if self.metrics is not None:
            observers.append(self.metrics.observe_requests(client.host or "in-process"))
        if self.tracing is not None:
            observers.append(self.tracing)
        self.client = client.with_observer(_ObserverGroup(observers)) if observers else client
        self.assignment: OwnerAssignment | None = None
        if options.leases is not None:
            # A renewal in a thread runs in real time; in simulated time it runs in the loop.
            in_thread = isinstance(clock, SystemClock)
            self.assignment = build_assignment(
                options.leases, client, clock=clock, entropy=entropy, in_thread=in_thread
            )
        # These tasks run until the operator ends; the liveness probe checks that they still run.
        self._background_tasks: list[asyncio.Task[None]] = []
        self.limit = TimeLimit(options.function_limit)
        self._diagnosis = Diagnosis(self.client, clock=clock) if options.diagnoses else None
        self._events: ClusterEventRecorder | None = None
        if options.records_events:
            from konverge._internal.runtime.event_recorder import ClusterEventRecorder

            self._events = ClusterEventRecorder(
                self.client, controller=registered.name, clock=clock, entropy=entropy, permit=self.assignment
            )
        self._run = OperatorRun(clock, entropy, self.metrics, events=self._events)

    def build_owner_kind(self, registration: OwnerRegistration) -> OwnerKind:
        """Build the runtime's description of one kind of owners."""
        cls, factories = registration.cls, registration.factories
        definition, metrics = find_definition(cls), self.metrics
        reconciler = self._build_reconciler(registration)
        finalizers: list[Finalizer] = []
        if cls in self._registered.finalizers:
            cleanup = self._registered.finalizers[cls]
            finalize = DeletionReconciler(reconciler, cleanup.names, cleanup.reconciler, registration.timeout)
            finalizers.append(Finalizer(cleanup.names, finalize, limit_function(self.limit, cleanup.is_needed)))
        # Also without factories: an earlier version of the operator may have added it.
        waves = (reconciler.wave_finalizer,)
        delete = DeletionReconciler(reconciler, waves, delete_components(factories), registration.timeout)
        finalizers.append(Finalizer(waves, delete, is_never_needed))
        return OwnerKind(
            name=definition.singular,
            gvk=definition.gvk,
            reconcile=reconciler,
            report_deletion=DeletionReconciler(reconciler).report,
            workers=registration.workers,
            timeout=registration.timeout,
            finalizers=tuple(finalizers),
            when=limit_function(self.limit, registration.when),
            reporter=None if self._events is None else OwnerEventReporter(self._events),
            forget=None if metrics is None else lambda key: metrics.conditions.forget(definition.gvk, key),
            kinds_of=(lambda owner: list_component_kinds(cls, factories, owner, self.limit)) if factories else None,
        )

    def build_tasks(self) -> list[OwnerTask]:
        """Build the timers and long-running tasks of all owners."""
        registrations = {registration.cls: registration for registration in self._registered.classes}
        return [self._build_task(task, registrations[task.cls]) for task in self._registered.tasks]

    def _build_task(self, task: TaskRegistration, registration: OwnerRegistration) -> OwnerTask:
        definition = find_definition(task.cls)
        reason = "TaskFailed" if task.interval is None else "TimerFailed"
        return OwnerTask(
            name=f"{definition.singular}/{task.name}",
            gvk=definition.gvk,
            run=TaskFunction(self._build_reconciler(registration), task.function),
            interval=task.interval,
            initial_delay=task.initial_delay,
            workers=task.workers,
            timeout=task.timeout,
            reporter=None if self._events is None else TaskEventReporter(self._events, reason, task.name),
        )

    def list_services(self) -> list[Service]:
        """List the background services in the order of their start."""
        services: list[Service] = [self._log_start, self._limit_functions]
        services += (self._run_companion(companion) for companion in self._registered.companions)
        webhooks = self._build_webhook_server()
        if self._options.observability is not None:
            services.append(lambda process: self._serve_observability(process, webhooks))
        if self._options.checks_permissions:
            services.append(self._check_permissions)
        if webhooks is not None:
            services.append(lambda process: self._serve_webhooks(webhooks))
        return services

    def list_writing_services(self) -> list[Service]:
        """List the background services that write to the cluster."""
        return [] if self._events is None else [self._send_events]

    def _run_companion(self, companion: Companion) -> Service:
        return lambda process: companion(self._run, process)

    def _build_reconciler(self, registration: OwnerRegistration) -> AuthorReconciler[object]:
        events: EventRecorder | None = self._events
        metrics: ConditionMetrics | None = None if self.metrics is None else self.metrics.conditions
        controller = find_definition(registration.cls).singular
        applies = None if self.metrics is None else _ControllerApplyMetrics(self.metrics.resources, controller)
        cleanup = self._registered.finalizers.get(registration.cls)
        return AuthorReconciler(
            registration.cls,
            registration.reconciler,
            self._clock,
            registration.condition_type,
            events=events,
            metrics=metrics,
            apply_metrics=applies,
            owner_events=None if self._events is None else OwnerEventReporter(self._events),
            time_limit=self.limit,
            run=self._run,
            adopt=self._registered.adopt,
            timeout=registration.timeout,
            reports_errors=registration.reports_errors,
            diagnosis=self._diagnosis,
            wave_finalizer=build_wave_finalizer_name(self._registered.name),
            finalizers=() if cleanup is None else cleanup.names,
            condition_annotation=build_annotation_name(self._registered.name),
        )

    def _build_webhook_server(self) -> WebhookServer | None:
        hooks = self._registered.webhooks.build_hooks(self.limit)
        if self._options.webhooks is None:
            if hooks:
                _log.warning(
                    "webhook handlers are registered but not served: set RunOptions.webhooks (konverge run --webhooks)"
                )
            return None
        from konverge._internal.runtime.webhooks import WebhookServer

        observer = None if self.metrics is None else self.metrics.webhooks
        if observer is not None:
            for path in (*(hook.path for hook in hooks.admission), *(hook.path for hook in hooks.conversion)):
                observer.add_webhook(path)
        # Every replica renews the certificate in a Secret, leader or not: the client has no write permit.
        return WebhookServer(self._options.webhooks, hooks, client=self.client, clock=self._clock, observer=observer)

    @asynccontextmanager
    async def _log_start(self, process: Process) -> AsyncIterator[None]:
        _log.info("operator %s is running", self._registered.name)
        yield

    @asynccontextmanager
    async def _limit_functions(self, process: Process) -> AsyncIterator[None]:
        """Interrupt author functions that take too long, and log the ones that cannot be interrupted."""
        limit = self._options.function_limit
        async with AsyncExitStack() as stack:
            stack.callback(self.limit.close)
            if limit and isinstance(self._clock, SystemClock):  # both threads run in real time
                await stack.enter_async_context(BlockedLoopWatchdog(limit, clock=self._clock))
            yield

    @asynccontextmanager
    async def _serve_observability(self, process: Process, webhooks: WebhookServer | None) -> AsyncIterator[None]:
        from konverge._internal.runtime.observability import ObservabilityServers, RuntimeSources

        assert self._options.observability is not None
        sources = replace(
            RuntimeSources.from_process(process),
            controllers=process.list_controllers,
            deletion_seconds=process.list_deletion_seconds,
            tasks=lambda: self._background_tasks,
            sections=lambda: self._run.sections,
        )
        if self.assignment is not None:
            sources = replace(sources, leases=self._read_leases)
        if webhooks is not None:
            sources = replace(sources, webhooks_unready_reason=lambda: webhooks.unready_reason)
        client = self.client
        async with ObservabilityServers(
            self._options.observability, sources, metrics=self.metrics, client=client, clock=self._clock
        ):
            yield

    @asynccontextmanager
    async def _lasting_background_task(
        self, work: Coroutine[Any, Any, None], name: str
    ) -> AsyncIterator[asyncio.Task[None]]:
        async with background_task(work, name=name) as task:
            self._background_tasks.append(task)
            yield task

    def _read_leases(self) -> dict[str, bool]:
        return {} if self.assignment is None else self.assignment.leases

    @asynccontextmanager
    async def _serve_webhooks(self, server: WebhookServer) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await self.start.run_step("starting the webhook server", partial(stack.enter_async_context, server))
            if self.metrics is not None:
                self.metrics.add_certificate(server.certificate)
            if not self._options.registers_webhooks:
                yield
                return
            try:
                applied = self._build_webhook_manifests(server)
                await self.start.run_step("registering the webhooks", partial(register, self.client, applied))
                keeping = server.keep_registered(
                    self.client, lambda: self._build_webhook_manifests(server), applied=applied
                )
                async with self._lasting_background_task(keeping, "webhooks' manifests"):
                    yield
            finally:
                options = self._options.webhooks
                if options is not None and options.service is None:
                    # No other process serves the address: the API server would refuse every request for the kinds.
                    # This is also necessary after a partial registration, and during a second cancellation.
                    await await_shielded(self._unregister_webhooks(server))

    async def _unregister_webhooks(self, server: WebhookServer) -> None:
        """Remove the webhooks of this process, and keep those that another process has registered since."""
        for manifest in self._build_webhook_manifests(server):
            gvk, key = GroupVersionKind.of(manifest), ObjectKey.of(manifest)
            try:
                live = await self.client.get(gvk, key)
            except NotFoundError:
                continue
            if f"{server.url}/" not in str(live):  # with the slash: the port 844 is also the beginning of 8443
                continue
            if gvk.kind == "CustomResourceDefinition":
                await register(self.client, [_remove_conversion(manifest)])
            else:
                await unregister(self.client, [manifest])

    def _build_webhook_manifests(self, server: WebhookServer) -> list[Object]:
        """Build the webhook manifests, which change with the CA certificates of the server."""
        return self._registered.build_webhook_manifests(server.endpoint)

    @asynccontextmanager
    async def _send_events(self, process: Process) -> AsyncIterator[None]:
        assert self._events is not None
        async with self._lasting_background_task(self._events.run(), "events") as sending:
            yield
            self._events.stop()
            await asyncio.wait([sending])

    @asynccontextmanager
    async def _check_permissions(self, process: Process) -> AsyncIterator[None]:
        """Log missing permissions before the first reconcile fails because of them.

        A failed check does not delay the start: it is repeated in the background.
        """
        try:
            await self._report_missing_permissions()
        except (ApiError, ConnectionFailedError, KindNotServedError) as error:
            _log.warning("checking the permissions failed: %s; retrying in the background", describe_failure(error))
            async with background_task(self._retry_permission_check(), name="permission check"):
                yield
        else:
            yield

    async def _retry_permission_check(self) -> None:
        steps = StartSteps(clock=self._clock, entropy=self._entropy, timeout=self._options.start_timeout)
        try:
            await steps.run_step("checking the permissions", self._report_missing_permissions)
        except (StartError, UntrustedServerError) as error:
            _log.warning("the permissions are not checked: %s", error)

    async def _report_missing_permissions(self) -> None:
        from konverge._internal.operator.permission_check import find_missing_permissions

        options = self._options
        permissions = derive_permissions(self._registered.declaration, options.runtime_features)
        for gap in permissions.gaps:
            _log.info("not checked: %s", gap)
        missing = await find_missing_permissions(
            self.client,
            permissions,
            role=self._registered.name,
            home=options.home,
            namespaces=options.namespaces,
        )
        for permission in missing:
            _log.error("%s", permission)


class _ObserverGroup:
    """A group of request observers."""

    def __init__(self, observers: list[RequestObserver]) -> None:
        self._observers = observers

    def on_request(
        self, method: str, path: str, *, code: str, seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        for observer in self._observers:
            observer.on_request(
                method, path, code=code, seconds=seconds, sent_bytes=sent_bytes, received_bytes=received_bytes
            )

    def on_retry(self, method: str, *, code: str) -> None:
        for observer in self._observers:
            observer.on_retry(method, code=code)


class _ControllerApplyMetrics:
    """Apply metrics with the name of the controller as an additional label."""

    def __init__(self, resources: ResourceMetrics, controller: str) -> None:
        self._resources = resources
        self._controller = controller

    def record_apply(self, *, owner_kind: str, component: str, resource: str, kind: str, operation: str) -> None:
        self._resources.record_apply(
            self._controller,
            owner_kind=owner_kind,
            component=component,
            resource=resource,
            kind=kind,
            operation=operation,
        )

    def record_failure(self, *, owner_kind: str, component: str, resource: str, kind: str) -> None:
        self._resources.record_failure(
            self._controller, owner_kind=owner_kind, component=component, resource=resource, kind=kind
        )


def _remove_conversion(definition: Object) -> Object:
    spec = {name: value for name, value in definition["spec"].items() if name != "conversion"}
    return {**definition, "spec": spec}
