"""Generated values: made once, kept over everything but a rotation, and shown nowhere; on both clusters."""

from __future__ import annotations

from base64 import b64decode
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from konverge._internal.apply.managed_fields import find_apply_entry
from konverge._internal.component.client_protocol import ApplyResult
from konverge._internal.component.value_generator import PreparedValues, prepare_values
from konverge._internal.primitives.value_generation import GENERATED_AT, ROTATE
from konverge.component import Component, ComponentBuilder, ReconcileContext
from konverge.dry_run import dry_run_component
from konverge.errors import BuildError
from konverge.kube import Object, ObjectKey
from konverge.options import Option, adopt, unowned
from konverge.primitives import ConfigMap, Data, Generated, GeneratedCertificate, GeneratedSecret
from tests.component.app import APP, CONFIG_MAP, SECRET, ComponentHarness

pytestmark = pytest.mark.anyio

NAME = "access"


def build_secret(app: ComponentHarness, **more: Any) -> GeneratedSecret:
    obj = {"metadata": {"name": NAME, "namespace": app.key.namespace}, "stringData": {"user": "app"}}
    return GeneratedSecret(obj, **({"values": {"password": Generated.password()}} | more))


def component(*resources: Any, options: tuple[Option, ...] = ()) -> Component:
    builder = ComponentBuilder("access", condition_type="AccessReady")
    for resource in resources:
        builder.with_resource(resource, *options)
    return builder.build()


async def read(app: ComponentHarness, name: str = NAME) -> Object:
    live = await app.find(SECRET, name)
    assert live is not None
    return live


async def read_values(app: ComponentHarness, name: str = NAME) -> dict[str, str]:
    return {key: b64decode(text).decode() for key, text in (await read(app, name))["data"].items()}


async def change(app: ComponentHarness, **data: str | None) -> None:
    """Another client changes values; None removes one."""
    live = await read(app)
    changed = {**live["data"], **data}
    live["data"] = {key: text for key, text in changed.items() if text is not None}
    await app.cluster.client.update(live, field_manager="kubectl-edit")


async def annotate(app: ComponentHarness, **annotations: str) -> None:
    body = {"metadata": {"annotations": {name.replace("__", "/"): text for name, text in annotations.items()}}}
    await app.cluster.client.patch(SECRET, ObjectKey(app.key.namespace, NAME), body, patch_type="merge")


def events(app: ComponentHarness) -> list[tuple[str, str]]:
    return [(reason, message) for reason, message, _ in app.events.noted if reason.startswith("Values")]


# Made once


async def test_a_value_is_made_with_the_secret_and_stays(app: ComponentHarness) -> None:
    wanted = component(build_secret(app))
    condition = await app.reconcile(wanted)
    first = await read_values(app)

    assert condition.reason == "Healthy"
    assert len(first["password"]) == 32
    assert first["user"] == "app"
    assert await app.list_steady_writes(wanted, is_restarted=True) == []
    assert await read_values(app) == first
    assert events(app) == [("ValuesGenerated", "Secret 'access': generated password")]
    assert [reason for reason, _, _ in app.events.noted] == ["CreatedSecret", "ValuesGenerated"]


async def test_one_request_makes_the_secret_and_owns_its_values(app: ComponentHarness) -> None:
    await app.reconcile(component(build_secret(app)))
    assert [entry.verb for entry in app.writes() if f"/secrets/{NAME}" in entry.path] == ["patch"]
    live = await read(app)
    (manager,) = (entry["manager"] for entry in live["metadata"]["managedFields"])
    entry = find_apply_entry(live, manager)
    assert entry is not None
    assert set(entry["fieldsV1"]["f:data"]) == {"f:password", "f:user"}


async def test_fixed_parts_change_and_the_value_stays(app: ComponentHarness) -> None:
    await app.reconcile(component(build_secret(app)))
    first = await read_values(app)
    secret = build_secret(app)
    moved = GeneratedSecret(
        {**secret.copy_baseline(), "stringData": {"user": "root"}}, values={"password": Generated.password()}
    )
    await app.reconcile(component(moved))
    assert await read_values(app) == {**first, "user": "root"}


async def test_a_declared_value_is_added_and_one_that_is_no_longer_declared_goes(app: ComponentHarness) -> None:
    await app.reconcile(component(build_secret(app)))
    first = await read_values(app)

    both = build_secret(app, values={"password": Generated.password(), "token": Generated.hex(40)})
    await app.reconcile(component(both))
    second = await read_values(app)
    await app.reconcile(component(build_secret(app)))

    assert second["password"] == first["password"]
    assert len(second["token"]) == 40
    assert await read_values(app) == first
    assert events(app)[-1] == ("ValuesGenerated", "Secret 'access': generated token")


async def test_another_shape_changes_nothing_until_the_next_rotation_and_is_reported_once(
    app: ComponentHarness,
) -> None:
    await app.reconcile(component(build_secret(app)))
    first = await read_values(app)
    longer = {"password": Generated.password(length=40)}

    await app.reconcile(component(build_secret(app, values=longer)))
    await app.reconcile(component(build_secret(app, values=longer)))
    assert await read_values(app) == first
    assert events(app)[1:] == [
        (
            "ValuesKept",
            "Secret 'access': password has another shape than password(length=40), and stays until its next rotation",
        )
    ]

    await app.reconcile(component(build_secret(app, values=longer, rotation="2")))
    assert len((await read_values(app))["password"]) == 40


# Read by others


async def test_other_resources_and_entries_get_the_value(app: ComponentHarness) -> None:
    password: Data[str] = Data("password")
    url: Data[str] = Data("url")
    secret = build_secret(
        app,
        cells={"password": password, "url": url},
        derive=lambda values: {"url": f"postgres://app:{values['password']}@db"},
    )
    seen: list[tuple[str, str]] = []

    def note(mutator: Any) -> None:
        seen.append((password.require(), url.require()))
        mutator.set_entry("seen", "yes")

    from konverge.mutation import Mutation

    reader = ConfigMap(app.build_config_map(), requires=[password, url], mutations=Mutation("note", note))
    condition = await app.reconcile(component(secret, reader))

    values = await read_values(app)
    assert condition.reason == "Healthy"
    assert seen[-1] == (values["password"], values["url"])
    assert values["url"] == f"postgres://app:{values['password']}@db"
    assert await app.find(CONFIG_MAP, "settings") is not None


# Changed and deleted by others


async def test_a_deleted_secret_gets_new_values_with_a_warning(app: ComponentHarness) -> None:
    wanted = component(build_secret(app))
    await app.reconcile(wanted)
    first = await read_values(app)
    await app.cluster.client.delete(SECRET, ObjectKey(app.key.namespace, NAME))

    await app.reconcile(wanted)

    assert (await read_values(app))["password"] != first["password"]
    assert (
        "ValuesLost",
        "Secret 'access' was deleted: new values of password. Readers of the earlier values need the new ones",
    ) in app.events.warned


async def test_a_value_that_another_client_changed_stays_and_is_reported(app: ComponentHarness) -> None:
    wanted = component(build_secret(app))
    await app.reconcile(wanted)
    await change(app, password="Y2hhbmdlZA==")

    await app.reconcile(wanted)
    await app.reconcile(wanted)

    assert (await read_values(app))["password"] == "changed"
    assert app.events.warned == [
        ("ValuesChanged", "Secret 'access': another client changed password; the new value stays")
    ]
    assert await app.list_steady_writes(wanted) == []


@pytest.mark.parametrize("text", [None, "", "Cg=="], ids=["removed", "empty", "blank"])
async def test_a_value_that_another_client_removed_is_made_again(app: ComponentHarness, text: str | None) -> None:
    wanted = component(build_secret(app))
    await app.reconcile(wanted)
    await change(app, password=text)
    await app.reconcile(wanted)
    assert len((await read_values(app))["password"]) == 32
    assert await app.list_steady_writes(wanted) == []


# Secrets of others


@pytest.mark.parametrize("options", [(), (unowned(),)], ids=["owned", "unowned"])
async def test_a_secret_of_another_client_blocks_and_stays(app: ComponentHarness, options: tuple[Option, ...]) -> None:
    await create_by_hand(app)
    before = await read(app)
    condition = await app.reconcile(component(build_secret(app), options=options))
    assert condition.reason == "Blocked"
    assert "v1/Secret" in condition.message
    assert "managed by painter, and adoption is refused" in condition.message
    assert await read(app) == before


async def test_an_adopted_secret_keeps_its_values_and_gets_the_missing_ones(app: ComponentHarness) -> None:
    await create_by_hand(app)
    both = build_secret(app, values={"password": Generated.password(), "token": Generated.hex(40)}, rotation="1")
    condition = await app.reconcile(component(both, options=(adopt(),)))
    values = await read_values(app)
    assert condition.reason == "Healthy"
    assert values["password"] == "theirs"
    assert len(values["token"]) == 40
    assert [reason for reason, _ in app.events.warned] == ["ResourceAdopted"]


async def test_an_unowned_secret_keeps_its_values(app: ComponentHarness) -> None:
    wanted = component(build_secret(app), options=(unowned(),))
    await app.reconcile(wanted)
    first = await read_values(app)
    assert await app.list_steady_writes(wanted, is_restarted=True) == []
    assert await read_values(app) == first
    assert "ownerReferences" not in (await read(app))["metadata"]


async def create_by_hand(app: ComponentHarness) -> None:
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME, "namespace": app.key.namespace}}
    await app.cluster.client.apply({**obj, "data": {"password": "dGhlaXJz"}}, field_manager="painter")


# Rotation


async def test_values_rotate_at_their_age(app: ComponentHarness) -> None:
    wanted = component(build_secret(app, rotate_after=timedelta(days=1)))
    await app.reconcile(wanted)
    first = await read_values(app)
    assert isinstance(app.wake_after, timedelta)
    assert timedelta(hours=23) < app.wake_after <= timedelta(days=1)
    await annotate(app, **{GENERATED_AT: "2020-01-01T00:00:00Z"})

    await app.reconcile(wanted)
    second = await read_values(app)
    await app.reconcile(wanted)

    assert second["password"] != first["password"]
    assert await read_values(app) == second
    assert events(app)[-1] == (
        "ValuesRotated",
        "Secret 'access': new values of password, because they are older than 1 day, 0:00:00",
    )


async def test_values_rotate_once_for_each_declared_text(app: ComponentHarness) -> None:
    seen = []
    for rotation in ("", "1", "1", "", "2"):
        await app.reconcile(component(build_secret(app, rotation=rotation)))
        seen.append((await read_values(app))["password"])
    assert seen[0] != seen[1] == seen[2] == seen[3] != seen[4]


async def test_values_rotate_once_for_each_annotation_of_a_user(app: ComponentHarness) -> None:
    wanted, seen = component(build_secret(app)), []
    for text in ("", "now", "now", "again"):
        if text:
            await annotate(app, **{ROTATE: text})
        await app.reconcile(wanted)
        seen.append((await read_values(app))["password"])
    assert len(set(seen)) == 3
    assert seen[1] == seen[2]
    assert await app.list_steady_writes(wanted, is_restarted=True) == []


async def test_an_immutable_secret_rotates_by_being_created_again(app: ComponentHarness) -> None:
    obj = {"metadata": {"name": NAME, "namespace": app.key.namespace}, "immutable": True}
    values = {"password": Generated.password()}
    await app.reconcile(component(GeneratedSecret(obj, values=values)))
    first = await read_values(app)
    rotated = component(GeneratedSecret(obj, values=values, rotation="2"))
    await app.reconcile_until("Healthy", rotated)
    live = await read(app)
    assert live["immutable"] is True
    assert await read_values(app) != first


# Types of Secrets


@pytest.mark.parametrize(
    ("kind", "key"), [("kubernetes.io/basic-auth", "password"), ("kubernetes.io/ssh-auth", "ssh-privatekey")]
)
async def test_a_type_with_required_keys_is_possible(app: ComponentHarness, kind: str, key: str) -> None:
    obj = {"metadata": {"name": NAME, "namespace": app.key.namespace}, "type": kind}
    shape = Generated.private_key() if key == "ssh-privatekey" else Generated.password()
    wanted = component(GeneratedSecret(obj, values={key: shape}))
    condition = await app.reconcile(wanted)
    assert condition.reason == "Healthy"
    assert len((await read_values(app))[key]) >= 32
    assert await app.list_steady_writes(wanted, is_restarted=True) == []


async def test_a_certificate_is_issued_once_and_again_for_other_names(app: ComponentHarness) -> None:
    obj = {"metadata": {"name": NAME, "namespace": app.key.namespace}}
    wanted = component(GeneratedCertificate(obj, dns_names=["db", "::1", "2001:DB8::1"]))
    condition = await app.reconcile(wanted)
    first = await read_values(app)
    assert condition.reason == "Healthy"
    assert first["tls.crt"].startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE KEY" in first["tls.key"]
    assert await app.list_steady_writes(wanted, is_restarted=True) == []
    assert isinstance(app.wake_after, timedelta)
    assert timedelta(days=59) < app.wake_after < timedelta(days=61)

    await app.reconcile(component(GeneratedCertificate(obj, dns_names=["db", "db.shop.svc"])))
    assert events(app)[-1] == (
        "ValuesRotated",
        "Secret 'access': new values of tls.crt, tls.key, ca.crt, because its names changed",
    )
    assert await read_values(app) != first


# Races


async def test_values_from_an_older_read_are_refused(app: ComponentHarness) -> None:
    """A rotation that is late, like a request after a pause of the process, changes nothing."""

    class Late:
        """The client of a replica that reads, pauses while another one rotates, and writes."""

        def __init__(self) -> None:
            inner = app.client
            self.mapping, self.get, self.update, self.delete = inner.mapping, inner.get, inner.update, inner.delete

        async def apply(self, obj: Object, *, field_manager: str) -> Any:
            if obj["kind"] == "Secret" and not self.has_paused:
                self.has_paused = True
                app.client = original
                await app.reconcile(component(build_secret(app, rotation="2")))
                app.client = self  # type: ignore[assignment]
            return await original.apply(obj, field_manager=field_manager)

        has_paused = False

    await app.reconcile(component(build_secret(app)))
    original = app.client
    app.client = Late()  # type: ignore[assignment]
    from konverge.component import ReconcileContext

    ctx = ReconcileContext(client=app.client, owner=await original.get(APP, app.key), clock=app.cluster.clock)
    condition = await component(build_secret(app, rotation="3")).reconcile(ctx)
    app.client = original
    assert condition.reason == "Updating"
    assert "changed meanwhile, and is read again" in condition.message
    values = await read_values(app)
    assert ctx.requeue_after is not None
    live = await read(app)
    assert live["metadata"]["annotations"]["konverge.dev/rotation"] == "2"
    await app.reconcile(component(build_secret(app, rotation="2")))
    assert await read_values(app) == values


# Bad input


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({}, "values: expected at least one generated value, found none"),
        ("password", "values: expected at least one"),
        ({"a": "x"}, "values['a']: expected a shape such as Generated.password(), found str"),
        ({"a": Generated.password(length=7)}, "values['a']: length: expected 8 to 1024, found 7"),
        ({"a": Generated.password(length=1025)}, "values['a']: length: expected 8 to 1024, found 1025"),
        ({"a": Generated.password(length=True)}, "values['a']: length: expected an integer, found bool"),
        ({"a": Generated.password(alphabet="aa")}, "alphabet: expected at least two characters, each once"),
        ({"a": Generated.password(alphabet="aé")}, "alphabet: expected printable ASCII"),
        ({"a": Generated.password(8, alphabet="ab")}, "expected a password of at least 40 bits"),
        ({"a": Generated.key(8)}, "size: expected 16 to 1024, found 8"),
        ({"a": Generated.hex(16)}, "length: expected 32 to 1024, found 16"),
        ({"a": Generated.name("Db-")}, "prefix: expected the beginning of a DNS label"),
        ({"user": Generated.password()}, "values['user']: stringData has the key too"),
    ],
)
async def test_a_wrong_shape_is_a_mistake_of_the_declaration(values: Any, error: str) -> None:
    obj = {"metadata": {"name": NAME, "namespace": "default"}, "stringData": {"user": "app"}}
    with pytest.raises(BuildError) as raised:
        component(GeneratedSecret(obj, values=values))
    assert error in str(raised.value)


async def test_two_shapes_for_one_secret_are_a_mistake(app: ComponentHarness) -> None:
    with pytest.raises(BuildError, match="registered twice"):
        component(build_secret(app), build_secret(app, values={"password": Generated.password(40)}))


async def test_a_derived_value_that_fails_is_reported_without_the_value(app: ComponentHarness) -> None:
    def fail(values: Any) -> Any:
        raise ValueError(values["password"])

    from konverge.errors import ReconcileError

    with pytest.raises(ReconcileError):
        await app.reconcile(component(build_secret(app, derive=fail)))
    condition = await app.condition("AccessReady")
    assert condition.reason == "Error"
    assert "ValueError" in condition.message


def test_a_preview_has_no_value() -> None:
    obj = {"metadata": {"name": NAME, "namespace": "default"}}
    secret = GeneratedSecret(obj, values={"p": Generated.password()}, derive=lambda values: {"url": f"x:{values['p']}"})
    assert secret.render()["stringData"] == {"url": "x:<generated>"}
    assert b64decode(secret.render()["data"]["p"]) == b"<generated>"


# Dry runs


class ServerOfDryRun:
    """The app's client, and the values that a dry run sends through it.

    Args:
        app: The owner.
    """

    def __init__(self, app: ComponentHarness) -> None:
        self._client = app.client
        self.mapping, self.get = app.client.mapping, app.client.get
        self.sent: set[str] = set()

    async def apply(self, obj: Object, *, field_manager: str, dry_run: bool = False) -> ApplyResult:
        for text in (obj.get("data") or {}).values():
            self.sent |= {text, b64decode(text).decode()}
        return await self._client.apply(obj, field_manager=field_manager, dry_run=dry_run)


@pytest.mark.parametrize("exists", [False, True], ids=["created", "rotated"])
async def test_a_dry_run_shows_the_change_without_a_value_and_writes_nothing(
    app: ComponentHarness, exists: bool
) -> None:
    if exists:
        await app.reconcile(component(build_secret(app)))
    before = await read_values(app) if exists else {}
    server = ServerOfDryRun(app)
    secret = build_secret(app, rotation="2", derive=lambda values: {"url": f"x:{values['password']}"})

    report = await dry_run_component(component(secret), server, await app.owner(), clock=app.cluster.clock)

    shown = str(msgspec.json.encode(report))
    assert report.error == ""
    assert [(change.action, change.identity.split("/")[1]) for change in report.changes] == [
        ("update" if exists else "create", "Secret")
    ]
    values = (server.sent | set(before.values())) - {"app", "YXBw"}
    assert len(values) >= 4
    assert [value for value in values if value in shown] == []
    assert (await read_values(app) if exists else await app.find(SECRET, NAME)) == (before or None)


def test_arguments_of_the_wrong_type_are_errors_of_the_declaration() -> None:
    obj = {"metadata": {"name": NAME, "namespace": "shop"}}
    wrong: Any = 5

    certificate = GeneratedCertificate(obj, dns_names=wrong)
    secret = GeneratedSecret(obj, values={"password": Generated.password()}, cells=wrong)

    assert certificate.errors == (
        "dns_names: expected a list of DNS names or addresses, such as ['db', 'db.shop.svc']",
    )
    assert secret.errors == ("cells: expected a mapping, found int",)


async def test_the_representation_of_prepared_values_shows_none(app: ComponentHarness) -> None:
    await app.reconcile(component(build_secret(app)))
    live = await read(app)
    ctx = ReconcileContext(client=app.client, owner=await app.owner())
    declared = component(build_secret(app))
    made: PreparedValues = await prepare_values(ctx, declared, declared.entries[0], build_secret(app), live)

    password = b64decode(live["data"]["password"]).decode()
    assert password not in repr(made)
    assert live["data"]["password"] not in repr(made)
