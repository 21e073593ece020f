"""What `konverge run` makes of its options, and which it refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click
import pytest

from konverge._internal.cli.run_options import RunFlags, run_flags
from konverge.errors import ConfigurationError
from konverge.kube import ObjectKey
from konverge.operator import RunOptions


def options(*arguments: str) -> RunOptions:
    """The options of a run with these arguments."""

    @click.command()
    @run_flags
    def flagged(**flags: Any) -> RunOptions:
        return RunFlags(**flags).build_options("webapp")

    found = flagged.main(list(arguments), standalone_mode=False)
    assert isinstance(found, RunOptions)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("--register-webhooks",),
        ("--webhook-certificate", "/certificates"),
        ("--webhook-secret", "a/b"),
        ("--webhook-service", "a/b", "--webhooks", "0"),
        ("--metrics-token-file", "/token"),
        ("--metrics-auth",),
        ("--metrics-certificate", "/certificates"),
        ("--debug-page", "--probes", ":8081"),
        ("--freshness", "60", "--metrics", ":8080"),
        ("--lease-name", "web"),
        ("--lease-namespace", "demo"),
        ("--lease-seconds", "15"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_option_that_would_do_nothing_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError, match=rf"{arguments[0]}: requires --"):
        options(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--debug-page",), "--debug-page: .*set --metrics-auth or --metrics-token-file"),
        (
            ("--metrics-auth", "--metrics-token-file", "/token"),
            "--metrics-auth, --metrics-token-file: expected at most",
        ),
    ],
)
def test_authentication_is_asked_for_by_the_names_of_options(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        options("--metrics", ":8080", *arguments)


@pytest.mark.parametrize("option", ["--grace", "--start-timeout"])
@pytest.mark.parametrize("seconds", ["nan", "inf", "1e308", "-5", "-inf"])
def test_a_time_that_is_none_is_refused(option: str, seconds: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a number from 0 to 86400"):
        options(option, seconds)


def test_the_start_is_tried_again_for_five_minutes_or_as_long_as_is_said() -> None:
    assert options().start_timeout == RunOptions().start_timeout == timedelta(minutes=5)
    assert options("--start-timeout", "0").start_timeout == timedelta()


@pytest.mark.parametrize("address", [":99999", ":\u00b2", "localhost", "a b:1"])
@pytest.mark.parametrize("option", ["--webhooks", "--metrics", "--probes"])
def test_an_address_that_is_none_is_refused_by_the_name_of_its_option(option: str, address: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{option}: listen address: expected host:port"):
        options(option, address)


@pytest.mark.parametrize(
    ("address", "host", "port"), [(":9443", "", 9443), ("9443", "127.0.0.1", 9443), ("[::1]:0", "::1", 0)]
)
def test_webhooks_are_served_where_other_servers_would_be(address: str, host: str, port: int) -> None:
    webhooks = options("--webhooks", address).webhooks

    assert webhooks is not None
    assert (webhooks.host, webhooks.port) == (host, port)


def test_the_certificate_of_the_webhooks_may_be_in_a_secret() -> None:
    webhooks = options("--webhooks", ":9443", "--webhook-secret", "demo/webapp").webhooks

    assert webhooks is not None
    assert webhooks.certificate_secret == ObjectKey("demo", "webapp")
    with pytest.raises(click.UsageError, match="expected at most one of them"):
        options("--webhooks", ":9443", "--webhook-secret", "demo/webapp", "--webhook-certificate", "/certificates")


@pytest.mark.parametrize("option", ["--webhook-service", "--webhook-secret"])
@pytest.mark.parametrize("name", ["a/", "/", "a/../../b", "A/b"])
def test_what_is_no_name_of_an_object_is_refused(option: str, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}: "):
        options("--webhooks", ":9443", option, name)


@pytest.mark.parametrize("namespace", ["", "UPPER case", "../../kube-system", "a.b"])
def test_a_namespace_that_is_none_is_refused_and_never_means_all(namespace: str) -> None:
    with pytest.raises(ConfigurationError, match="namespace "):
        options("--namespace", "default", "--namespace", namespace)


@pytest.mark.parametrize("option", ["--lease-name", "--lease-namespace"])
def test_an_empty_name_of_a_lease_is_not_taken_for_none(option: str) -> None:
    with pytest.raises(ConfigurationError):
        options("--leader-elect", option, "")


def test_a_namespace_that_is_given_twice_is_watched_once() -> None:
    assert options("--namespace", "a", "--namespace", "a").namespaces == ("a",)


def test_how_old_what_is_in_memory_may_be_is_an_option() -> None:
    chosen, usual = options("--probes", ":8081", "--freshness", "60"), options("--probes", ":8081")

    assert chosen.observability is not None
    assert usual.observability is not None
    assert (chosen.observability.freshness, usual.observability.freshness) == (
        timedelta(seconds=60),
        timedelta(seconds=180),
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--metrics", ":8080", "--probes", "8080"),
            r"metrics_address \(--metrics\) and probe_address .*: expected different ports",
        ),
        (("--metrics", "8080", "--probes", "127.0.0.1:8080"), "found 127.0.0.1:8080 for both"),
        (
            ("--probes", ":8080", "--webhooks", ":8080"),
            "webhooks and probes are two servers with the same port 8080",
        ),
    ],
    ids=["all interfaces", "one host", "webhooks"],
)
def test_servers_that_would_take_each_others_port_are_refused(arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        options(*arguments)


def test_servers_may_share_a_port_on_different_hosts_or_take_any_that_is_free() -> None:
    assert options("--metrics", "127.0.0.1:8080", "--probes", "127.0.0.2:8080").observability is not None
    assert options("--metrics", ":00", "--probes", ":00").observability is not None
