"""An author function that raises, returns an invalid value or never returns is an error that names it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, cast

import pytest

from konverge.component import (
    Component,
    ComponentBuilder,
    PrerequisiteResult,
    PrerequisiteStatus,
    ReconcileContext,
    TimeLimit,
)
from konverge.errors import BuildError, ReconcileError
from konverge.guards import blocked
from konverge.mutation import Mutation
from konverge.primitives import (
    ConfigMap,
    Convergence,
    ConvergingStatus,
    Data,
    Deployment,
    Grace,
    GraceStatus,
    GuardResult,
    Secret,
    Suspension,
    SuspensionStatus,
)
from tests.component.app import CONFIG_MAP, ComponentHarness

pytestmark = pytest.mark.anyio

NEVER_READY = "konverge.test/never-ready:1"
Faulty = Callable[..., Any]


def frontend() -> ComponentBuilder:
    return ComponentBuilder("frontend", condition_type="FrontendReady")


class Asked:
    """A gate, or a prerequisite, of one function."""

    def __init__(self, function: Faulty) -> None:
        self.enabled = self.check = function


def of_gate(app: ComponentHarness, function: Faulty) -> Component:
    return frontend().with_feature_gate(Asked(function)).build()


def of_prerequisite(app: ComponentHarness, function: Faulty) -> Component:
    return frontend().with_prerequisite(Asked(function)).build()


def of_config(**options: Callable[[Faulty], Any]) -> Callable[[ComponentHarness, Faulty], Component]:
    def build(app: ComponentHarness, function: Faulty) -> Component:
        made: dict[str, Any] = {name: option(function) for name, option in options.items()}
        return frontend().with_resource(ConfigMap(app.build_config_map(), **made)).build()

    return build


def of_workload(
    *, suspended: bool = False, **options: Callable[[Faulty], Any]
) -> Callable[[ComponentHarness, Faulty], Component]:
    def build(app: ComponentHarness, function: Faulty) -> Component:
        made: dict[str, Any] = {name: option(function) for name, option in options.items()}
        deployment = Deployment(app.build_deployment(image=NEVER_READY), **made)
        grace = timedelta(milliseconds=1)
        return frontend().with_resource(deployment).with_grace_period(grace).suspend(suspended).build()

    return build


def itself(function: Faulty) -> Faulty:
    return function


KINDS: dict[str, tuple[Callable[[ComponentHarness, Faulty], Component], str, str]] = {
    "gate": (of_gate, "FeatureGateError", "failed to evaluate the feature gate of component frontend: "),
    "prerequisite": (of_prerequisite, "PrerequisiteNotMet", "failed to check a prerequisite of component frontend: "),
    "guard": (of_config(guard=itself), "Error", "failed to evaluate guard for resource v1/ConfigMap/"),
    "mutation": (
        of_config(mutations=lambda function: Mutation("paint", function)),
        "Error",
        "/settings: failed to apply mutation intent for paint: ",
    ),
    "mutation's gate": (
        of_config(mutations=lambda function: Mutation("paint", lambda _: None, Asked(function))),
        "Error",
        "/settings: failed to apply mutation intent for paint: ",
    ),
    "mutation's edit": (
        of_config(mutations=lambda function: Mutation("paint", lambda config: config.edit_data(function))),
        "Error",
        "/settings: failed to apply planned mutations of paint: ",
    ),
    "extractor": (of_config(extract=itself), "Error", "failed to extract data from resource v1/ConfigMap/"),
    "extraction": (
        of_config(extract=lambda function: Data[Any]("colour").fill_with(function)),
        "Error",
        "failed to extract data from resource v1/ConfigMap/",
    ),
    "health": (
        of_workload(converging_status=itself),
        "Error",
        "failed to determine converging status of resource apps/v1/Deployment/",
    ),
    "grace": (
        of_workload(grace_status=itself),
        "Error",
        "failed to determine grace status of resource apps/v1/Deployment/",
    ),
    "suspension": (
        of_workload(suspended=True, suspend=itself),
        "Error",
        "/web: failed to apply mutation intent for suspend: ",
    ),
    "suspension status": (
        of_workload(suspended=True, suspension_status=itself),
        "Error",
        "failed to determine suspension status of resource apps/v1/Deployment/",
    ),
}
JUDGES = ["gate", "prerequisite", "guard", "mutation's gate", "health", "grace", "suspension status"]


@pytest.fixture
def limit() -> Iterator[TimeLimit]:
    limit = TimeLimit(timedelta(milliseconds=50))
    yield limit
    limit.close()


async def reconcile_and_get_message(app: ComponentHarness, limit: TimeLimit, kind: str, function: Faulty) -> str:
    """Return the error message of a reconcile; the owner's other component must be reconciled nevertheless."""
    build, reason, message = KINDS[kind]
    component = build(app, function)
    other = (
        ComponentBuilder("other", condition_type="OtherReady")
        .with_resource(ConfigMap(app.build_config_map("other")))
        .build()
    )
    error: ReconcileError | None = None
    for _ in range(2):  # the second one is when the grace is over
        owner, clock = await app.owner(), app.cluster.clock
        ctx = ReconcileContext(client=app.client, owner=owner, clock=clock, time_limit=limit)
        async with ctx.flushing_status():
            try:
                await component.reconcile(ctx)
            except ReconcileError as raised:
                error = raised
            await other.reconcile(ctx)
        await clock.sleep(0.01)

    condition = await app.condition("FrontendReady")
    assert error is not None
    assert (condition.status, condition.reason) == ("False", reason)
    assert condition.message in str(error)
    assert message in str(error)
    assert (await app.condition("OtherReady")).reason == "Healthy"
    assert await app.find(CONFIG_MAP, "other") is not None
    return str(error)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_function_that_raises_is_an_error_that_names_it(
    app: ComponentHarness, limit: TimeLimit, kind: str
) -> None:
    def raises(*_: object) -> Any:
        raise RuntimeError("the author's mistake")

    assert "the author's mistake" in await reconcile_and_get_message(app, limit, kind, raises)


@pytest.mark.parametrize("answer", [None, True, 0, "Healthy"], ids=str)
@pytest.mark.parametrize("kind", [kind for kind in JUDGES if "gate" not in kind])
async def test_a_function_that_answers_nonsense_is_an_error_that_names_it(
    app: ComponentHarness, limit: TimeLimit, kind: str, answer: object
) -> None:
    await reconcile_and_get_message(app, limit, kind, lambda *_: answer)


class Silent(Exception):
    """One of whose text nobody can know."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Panic(BaseException):
    """An error of an extension in another language, which is no ``Exception``."""


@pytest.mark.parametrize(
    "error",
    [Silent(), Panic("at the disco"), SystemExit(3), asyncio.CancelledError(), GeneratorExit(), StopIteration()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_function_that_raises_whatever_it_likes_harms_no_other_component(
    app: ComponentHarness, limit: TimeLimit, kind: str, error: BaseException
) -> None:
    def raises(*_: object) -> Any:
        raise error

    assert type(error).__name__ in await reconcile_and_get_message(app, limit, kind, raises)


async def test_a_factory_that_raises_fails_the_pass_before_anything_is_touched(app: ComponentHarness) -> None:
    def broken() -> ConfigMap:
        raise KeyError("colour")

    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("first")))
        .include_when(True, broken)
        .include_when(False, broken)
        .build()
    )
    with pytest.raises(ReconcileError, match="failed to construct a resource of include_when"):
        await app.reconcile(component)

    condition = await app.condition("FrontendReady")
    assert (condition.status, condition.reason) == ("False", "Error")
    assert condition.message == "failed to construct a resource of include_when(): KeyError: 'colour'"
    assert await app.find(CONFIG_MAP, "first") is None
    with pytest.raises(ReconcileError, match="KeyError: 'colour'"):
        component.preview()


def test_a_factory_that_raises_hides_no_mistake_and_makes_none() -> None:
    def broken() -> ConfigMap:
        raise KeyError("colour")

    colour = Data[str]("colour")
    reader = ConfigMap({"metadata": {"name": "reader", "namespace": "shop"}}, requires=[colour])
    frontend().include_when(True, broken).with_resource(reader).build()  # what is missing may produce the colour
    with pytest.raises(BuildError, match="grace period is negative"):
        frontend().include_when(True, broken).with_grace_period(timedelta(seconds=-1)).build()


async def test_an_owner_without_a_uid_is_an_error_that_says_so(app: ComponentHarness) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map())).build()
    owner = await app.owner()
    del owner["metadata"]["uid"]
    ctx = ReconcileContext(client=app.client, owner=owner, clock=app.cluster.clock)
    with pytest.raises(ReconcileError, match=r"metadata\.uid is empty"):
        await component.reconcile(ctx)

    condition = ctx.condition("FrontendReady")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Error")
    assert "TestApp" in condition.message
    assert await app.find(CONFIG_MAP, "settings") is None


async def test_an_interrupt_is_nobodys_failure(app: ComponentHarness) -> None:
    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await app.reconcile(of_config(guard=itself)(app, interrupted))


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_function_raises_is_told_even_if_it_cannot_be_sent_or_read(
    app: ComponentHarness, limit: TimeLimit, kind: str
) -> None:
    def raises(*_: object) -> Any:
        raise OSError(f"no such file: caf\udce9{'!' * 10_000_000}")

    assert len(await reconcile_and_get_message(app, limit, kind, raises)) < 40_000

    assert "no such file: caf?!" in (await app.condition("FrontendReady")).message


SPELLED: list[tuple[str, Callable[..., Any], str]] = [
    ("prerequisite", PrerequisiteResult, "NotMet"),
    ("guard", GuardResult, "Blocked"),
    ("health", Convergence, "Creating"),
    ("grace", Grace, "Down"),
    ("suspension status", Suspension, "Suspending"),
]


@pytest.mark.parametrize(("kind", "answer", "status"), SPELLED)
async def test_a_text_that_is_spelled_like_a_status_is_none(
    app: ComponentHarness, limit: TimeLimit, kind: str, answer: Callable[..., Any], status: str
) -> None:
    message = await reconcile_and_get_message(app, limit, kind, lambda *_: answer(status, "as the author spells it"))

    assert f"status='{status}'" in message


NO_TEXT: list[tuple[str, Any]] = [
    ("prerequisite", PrerequisiteResult(PrerequisiteStatus.NOT_MET, cast(Any, OSError("away")))),
    ("guard", blocked(cast(Any, OSError("away")))),
    ("health", Convergence(ConvergingStatus.CREATING, cast(Any, 3))),
    ("grace", Grace(GraceStatus.DOWN, cast(Any, b"disk"))),
    ("suspension status", Suspension(SuspensionStatus.SUSPENDING, cast(Any, ["disk"]))),
]


@pytest.mark.parametrize(("kind", "answer"), NO_TEXT)
async def test_a_reason_that_is_no_text_is_an_error_that_names_it(
    app: ComponentHarness, limit: TimeLimit, kind: str, answer: Any
) -> None:
    assert f"reason as text, found {type(answer.reason).__name__}" in await reconcile_and_get_message(
        app, limit, kind, lambda *_: answer
    )


@pytest.mark.parametrize("answer", [None, 0, "no"], ids=str)
@pytest.mark.parametrize("kind", [kind for kind in JUDGES if "gate" in kind])
async def test_a_gate_that_answers_no_boolean_is_an_error_that_names_it(
    app: ComponentHarness, limit: TimeLimit, kind: str, answer: object
) -> None:
    assert f"returned {type(answer).__name__}: expected bool" in await reconcile_and_get_message(
        app, limit, kind, lambda *_: answer
    )


NO_OBJECTS: list[Any] = [
    None,
    "metadata",
    {"data": {}},
    {"metadata": None},
    {"metadata": {"name": "settings", "ownerReferences": "web"}},
    {"metadata": {"name": "settings", "ownerReferences": [None]}},
]


@pytest.mark.parametrize("rendered", NO_OBJECTS, ids=str)
async def test_a_resource_that_renders_no_object_is_an_error_that_names_it(
    app: ComponentHarness, rendered: Any
) -> None:
    class Blank(ConfigMap):
        """A resource of an author's own."""

        def render(self, *, suspended: bool = False) -> Any:
            return rendered

    component = frontend().with_resource(Blank(app.build_config_map())).build()
    resource = f"resource v1/ConfigMap/{app.key.namespace}/settings: .*expected .*, found "

    with pytest.raises(ReconcileError, match=f"^failed to preview {resource}"):
        component.preview()
    with pytest.raises(ReconcileError, match=f"^failed to mutate {resource}"):
        await app.reconcile(component)

    assert (await app.condition("FrontendReady")).reason == "Error"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_function_that_never_returns_is_an_error_that_names_it(
    app: ComponentHarness, limit: TimeLimit, kind: str
) -> None:
    def hangs(*_: object) -> Any:
        while True:
            pass

    message = await reconcile_and_get_message(app, limit, kind, hangs)

    assert "it did not return within 0.05 s; it was in hangs (test_author_functions.py, line " in message


READERS: dict[str, Callable[[Callable[..., Any]], dict[str, Any]]] = {
    "guard": lambda quotes: {"guard": quotes},
    "mutation": lambda quotes: {"mutations": Mutation("paint", quotes)},
    "edit": lambda quotes: {"mutations": Mutation("paint", lambda config: config.edit_data(quotes))},
    "extractor": lambda quotes: {"extract": quotes},
}


@pytest.mark.parametrize("raised", [ValueError, Panic])
@pytest.mark.parametrize("declared", ["requires", "optional_data"])
@pytest.mark.parametrize("reader", READERS)
async def test_a_function_that_reads_a_secrets_cell_quotes_no_value(
    app: ComponentHarness, reader: str, declared: str, raised: type[BaseException]
) -> None:
    password = Data[str]("password")

    def quotes(*_: object) -> Any:
        raise raised(f"invalid port: {password.require()}")

    login = {"metadata": {"name": "login", "namespace": app.key.namespace}, "stringData": {"password": "hunter2"}}
    made: dict[str, Any] = {declared: password, **READERS[reader](quotes)}
    component = (
        frontend()
        .with_resource(Secret(login, extract=password.fill_with(lambda _: "hunter2")))
        .with_resource(ConfigMap(app.build_config_map(), **made))
        .build()
    )

    with pytest.raises(ReconcileError) as error:
        await app.reconcile(component)

    message = "".join(traceback.format_exception(error.value))
    assert "hunter2" not in message + (await app.condition("FrontendReady")).message
    assert f"{raised.__name__} (its text is withheld" in message
