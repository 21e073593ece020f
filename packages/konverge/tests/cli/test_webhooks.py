"""`konverge webhooks`: webhook configurations for kubectl."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from konverge_cluster._internal.cli.demo import find_example_folder
from tests.cli.conftest import Konverge

SHOPS = """
from dataclasses import dataclass
from konverge import Metadata, Operator, custom_resource

print("kind: printed")


@dataclass
class ShopSpec:
    theme: str = ""


@custom_resource(group="cli.konverge.test", version="v1")
@dataclass
class Shop:
    metadata: Metadata
    spec: ShopSpec


@custom_resource(group="cli.konverge.test", version="v1beta1", kind="Shop")
@dataclass
class OldShop:
    metadata: Metadata
    spec: ShopSpec


operator = Operator("shops")


@operator.reconciles(Shop)
async def reconcile(shop, ctx):
    return None


@operator.validates(Shop)
def check(shop, request):
    return []


@operator.converts(OldShop, Shop)
def forward(shop):
    return Shop(shop.metadata, shop.spec)


@operator.converts(Shop, OldShop)
def back(shop):
    return OldShop(shop.metadata, shop.spec)
"""

BUNDLE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    file = tmp_path / "shops.py"
    file.write_text(SHOPS)
    (tmp_path / "ca.crt").write_bytes(BUNDLE)
    (tmp_path / "all.pem").write_bytes(BUNDLE + KEY)
    (tmp_path / "empty").write_bytes(b"")
    return file


@pytest.mark.slow
def test_configurations_and_converted_definitions_lead_to_the_service(started_konverge: Konverge, shops: Path) -> None:
    done = started_konverge("webhooks", shops, "--service", "demo/shops-webhooks", "--ca-bundle", "ca.crt")

    configuration, definition = yaml.safe_load_all(done.stdout)
    assert (configuration["kind"], configuration["metadata"]["name"]) == ("ValidatingWebhookConfiguration", "shops")
    assert definition["kind"] == "CustomResourceDefinition"
    validating = configuration["webhooks"][0]["clientConfig"]
    converting = definition["spec"]["conversion"]["webhook"]["clientConfig"]
    for config in (validating, converting):
        assert (config["service"]["namespace"], config["service"]["name"], config["service"]["port"]) == (
            "demo",
            "shops-webhooks",
            443,
        )
        assert base64.b64decode(config["caBundle"]) == BUNDLE


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ((), 2, "--service"),
        (("--service", "shops"), 2, "--service: expected NAMESPACE/NAME, found 'shops'"),
        (("--service", "a/../../b"), 3, "--service: name '../../b': "),
        (("--service", "a/b", "--ca-bundle", "absent"), 3, "absent: No such file or directory"),
        (("--service", "a/b", "--ca-bundle", "empty"), 3, "empty: expected PEM certificates, found none"),
        (
            ("--service", "a/b", "--ca-bundle", "all.pem"),
            3,
            "all.pem: expected only PEM certificates, found a private key",
        ),
    ],
)
def test_what_cannot_be_used_is_named(
    konverge: Konverge, shops: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    done = konverge("webhooks", shops, *arguments)

    assert done.returncode == code
    assert problem in done.stderr
    assert "hunter2" not in done.stderr
    assert done.stdout == ""


def test_an_operator_without_handlers_has_none_to_print(konverge: Konverge) -> None:
    done = konverge("webhooks", find_example_folder() / "operator.py", "--service", "a/b")

    assert done.returncode == 3
    assert "expected an operator with webhook handlers, found none" in done.stderr
