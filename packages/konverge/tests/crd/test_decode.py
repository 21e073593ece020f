from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge.crd import Metadata, decode, encode
from konverge.errors import DecodeError, TerminalError
from tests.crd.webapps import Policy, PolicySpec, Queue, QueueSpec, QueueStatus, Tier, WebApp, WebAppSpec


def web_app(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "crd.konverge.test/v1alpha1",
        "kind": "WebApp",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"image": "app:1", **spec},
    }


def test_camel_case_fields_become_snake_case_attributes() -> None:
    app = decode(WebApp, web_app(tracingEnabled=True, resources={"cpuLimit": "2", "extraLimits": {"gpu_count": "1"}}))

    assert app.spec.tracing_enabled is True
    assert app.spec.resources.cpu_limit == "2"
    assert app.spec.resources.extra_limits == {"gpu_count": "1"}, "keys of a mapping are data, not names"


def test_metadata_is_read() -> None:
    obj = web_app()
    obj["metadata"] |= {
        "uid": "u-1",
        "generation": 3,
        "resourceVersion": "17",
        "labels": {"a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    }

    metadata = decode(WebApp, obj).metadata

    assert metadata == Metadata(
        name="web",
        namespace="default",
        uid="u-1",
        generation=3,
        resource_version="17",
        labels={"a": "b"},
        creation_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert str(metadata.key) == "default/web"
    assert not metadata.is_deleting


def test_absent_fields_take_their_defaults() -> None:
    assert decode(WebApp, web_app()).spec == WebAppSpec(image="app:1")


def test_rich_fields_become_python_values() -> None:
    spec = decode(
        WebApp,
        web_app(
            tier="paid",
            gracePeriod="1h30m",
            zones=["x", "y"],
            notBefore="2026-01-01T00:00:00Z",
            ports=[{"name": "http", "port": 80, "appProtocol": "h2c"}],
            maxUnavailable="50%",
        ),
    ).spec

    assert spec.tier is Tier.PAID
    assert spec.grace_period == timedelta(hours=1, minutes=30)
    assert spec.zones == {"x", "y"}
    assert spec.not_before == datetime(2026, 1, 1, tzinfo=UTC)
    assert spec.ports[0].app_protocol == "h2c"
    assert spec.max_unavailable == "50%"


def test_unknown_fields_are_passed_over() -> None:
    obj = web_app(fromTheFuture=1, resources={"cpuLimit": "1", "new": []}) | {"status": {"conditions": []}, "extra": 1}

    assert decode(WebApp, obj).spec.resources.cpu_limit == "1"


def test_a_null_is_the_default_where_the_field_is_not_nullable() -> None:
    assert decode(WebApp, web_app(replicas=None)).spec.replicas == 1


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"replicas": "3"}, "spec.replicas: expected int, found str"),
        ({"replicas": 51}, "spec.replicas: expected int <= 50"),
        ({"image": None}, "spec.image: expected str, found null"),
        ({"tracingEnabled": 1}, "spec.tracingEnabled: expected bool, found int"),
        ({"ports": [{"name": "http", "port": 80}, {"name": "x"}]}, "spec.ports[1].port: required, but missing"),
        ({"resources": "big"}, "spec.resources: expected object, found str"),
        ({"tier": "gold"}, "spec.tier: Invalid enum value 'gold'"),
        (
            {"gracePeriod": "soon"},
            "spec.gracePeriod: expected a duration such as 90s, 5m or 1h30m, found 'soon'",
        ),
        ({"gracePeriod": 5}, "spec.gracePeriod: expected duration, found int"),
    ],
)
def test_a_field_that_does_not_fit_is_named(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecodeError) as failure:
        decode(WebApp, web_app(**spec))

    assert failure.value.problem == problem
    assert str(failure.value) == f"WebApp default/web: {problem}"


def test_a_missing_spec_is_named() -> None:
    obj = web_app()
    del obj["spec"]

    with pytest.raises(DecodeError, match=r"^WebApp default/web: spec: required, but missing$"):
        decode(WebApp, obj)


def test_an_object_that_does_not_decode_is_not_worth_a_retry() -> None:
    assert issubclass(DecodeError, TerminalError)


def test_attrs_classes_decode_with_status() -> None:
    queue = decode(
        Queue, {"metadata": {"name": "q"}, "spec": {"maxLength": 5}, "status": {"currentLength": 2, "conditions": []}}
    )

    assert queue.spec == QueueSpec(max_length=5)
    assert queue.status == QueueStatus(current_length=2)


def test_a_struct_keeps_the_json_names_it_gives() -> None:
    policy = decode(Policy, {"metadata": {"name": "p"}, "spec": {"allowEverything": True, "peerNames": ["a"]}})

    assert policy.spec == PolicySpec(allow_all=True, peer_names=["a"])


def test_encoding_gives_what_decodes_to_the_same() -> None:
    app = WebApp(
        metadata=Metadata(name="web", namespace="default", labels={"a": "b"}),
        spec=WebAppSpec(image="app:1", tracing_enabled=True, not_before=datetime(2026, 1, 1, tzinfo=UTC)),
    )

    obj = encode(app)

    assert decode(WebApp, obj) == app
    assert obj["apiVersion"] == "crd.konverge.test/v1alpha1"
    assert obj["kind"] == "WebApp"
    assert obj["metadata"] == {"name": "web", "namespace": "default", "labels": {"a": "b"}}
    assert obj["spec"]["zones"] == ["a", "b"], "a set has one order in JSON"
    assert obj["spec"]["gracePeriod"] == "5m"
    assert "ratio" not in obj["spec"]
