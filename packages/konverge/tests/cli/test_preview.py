"""`konverge preview`: what components want, with and without a cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest
import yaml

from tests.cli.conftest import Konverge
from tests.cli.stuck_owner import FILE, StuckOwner, ward
from tests.cli.test_bad_input import check_one_line


@pytest.fixture
def east(tmp_path: Path) -> Path:
    """A ward in a file, without a namespace."""
    owner = ward("default", colour="green")
    del owner["metadata"]["namespace"]
    file = tmp_path / "east.yaml"
    file.write_text(yaml.safe_dump(owner))
    return file


@pytest.mark.slow
def test_the_objects_come_in_order_and_what_cannot_be_rendered_does_not_hide_the_rest(
    started_konverge: Konverge, east: Path
) -> None:
    done = started_konverge("preview", FILE, east)

    found = [(obj["kind"], obj["metadata"]["name"]) for obj in yaml.safe_load_all(done.stdout)]
    assert (done.returncode, done.stderr) == (0, "")
    assert found == [
        ("ConfigMap", "east-settings"),
        ("Secret", "east-access"),
        ("Deployment", "east-pages"),
        ("Service", "east-pages"),
        ("ConfigMap", "east-outbox"),
        ("Service", "east-mail"),
        ("ConfigMap", "east-index"),
    ]


def test_json_is_a_list_with_the_same_objects(konverge: Konverge, east: Path) -> None:
    found = json.loads(konverge("preview", FILE, east, "-o", "json").stdout)

    assert found["kind"] == "List"
    assert found["items"] == list(yaml.safe_load_all(konverge("preview", FILE, east).stdout))


def test_the_owners_fields_count_and_values_of_secrets_do_not_show(konverge: Konverge, east: Path) -> None:
    text = konverge("preview", FILE, east, "-n", "wing").stdout

    settings, access, *_ = yaml.safe_load_all(text)
    assert settings["data"] == {"colour": "green"}
    assert settings["metadata"]["namespace"] == "wing"
    assert access["stringData"] == {"password": "(hidden)"}
    assert "hunter2" not in text


def test_a_component_that_fails_is_told_and_the_others_are_shown(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "east.yaml").write_text(yaml.safe_dump(ward("default", broken=True)))

    done = konverge("preview", FILE, "east.yaml")

    assert done.returncode == 1
    assert done.stderr.startswith("konverge: component settings: v1/ConfigMap/default/east-settings: failed to mutate")
    assert done.stderr.count("\n") == 1
    assert len(list(yaml.safe_load_all(done.stdout))) == 6


def test_a_function_that_forgets_to_build_its_component(konverge: Konverge, tmp_path: Path, east: Path) -> None:
    (tmp_path / "unbuilt.py").write_text(FILE.read_text().replace(".build()", "", 1))

    done = konverge("preview", "unbuilt.py", east)

    assert done.returncode == 1
    assert done.stderr == (
        "konverge: settings: TypeError: expected a Component, found ComponentBuilder; does it end in .build()?\n"
    )


def test_data_cells_are_filled_by_name(konverge: Konverge, tmp_path: Path, east: Path) -> None:
    uses = 'requires=relay, mutations=Mutation("relay", lambda box: box.set_entry("relay", relay.require()))'
    (tmp_path / "reads.py").write_text(FILE.read_text().replace("requires=relay", uses))

    done = konverge("preview", "reads.py", east, "--data", "relay=mx=1")
    without = konverge("preview", "reads.py", east)

    (outbox,) = [obj for obj in yaml.safe_load_all(done.stdout) if obj["metadata"]["name"] == "east-outbox"]
    assert (done.returncode, done.stderr) == (0, "")
    assert outbox["data"] == {"size": "10", "relay": "mx=1"}
    assert without.returncode == 1
    assert 'data "relay" is not extracted' in without.stderr
    assert "--data" in without.stderr


@pytest.mark.parametrize(
    ("data", "exit_code", "says"),
    [
        ("host=mx", 1, 'konverge: --data: expected the names of data cells ("relay"), found "host"\n'),
        ("relay", 2, "--data: expected NAME=VALUE, found 'relay'\n"),
    ],
)
def test_data_that_is_for_no_cell(konverge: Konverge, east: Path, data: str, exit_code: int, says: str) -> None:
    done = konverge("preview", FILE, east, "--data", data)

    assert done.returncode == exit_code
    assert done.stderr.endswith(says)


@pytest.mark.parametrize(
    ("taken", "says"),
    [
        ("Ready", "its condition type Ready is that of the owner's summary: expected one of its own"),
        ("SettingsReady", 'component "settings" has condition type SettingsReady too: expected two condition types'),
    ],
)
def test_a_condition_type_that_a_pass_would_refuse(
    konverge: Konverge, tmp_path: Path, east: Path, taken: str, says: str
) -> None:
    (tmp_path / "taken.py").write_text(FILE.read_text().replace("MailReady", taken))

    done = konverge("preview", "taken.py", east)

    assert done.returncode == 1
    assert done.stderr == f'konverge: mail: component "mail" cannot be built: 1 mistake - {says}\n'
    assert "east-mail" not in done.stdout


def test_a_component_without_resources_is_told(konverge: Konverge, tmp_path: Path, east: Path) -> None:
    resource = '.with_resource(ConfigMap({"metadata": build_metadata(ward, "index")}))'
    (tmp_path / "empty.py").write_text(FILE.read_text().replace(resource, ""))

    done = konverge("preview", "empty.py", east)

    assert done.returncode == 0
    assert done.stderr == "konverge: component search: applies nothing: it has no resources\n"


def test_who_asks_for_the_objects_of_a_box_is_told_what_shows_them(konverge: Konverge, east: Path) -> None:
    check_one_line(konverge("preview", "box.yaml", east), 3, "konverge box render box.yaml --object OWNER.yaml")


def test_an_owner_in_a_pipe(konverge: Konverge, tmp_path: Path, east: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(east.read_bytes()), daemon=True)
    writer.start()

    done = konverge("preview", FILE, pipe)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == konverge("preview", FILE, east).stdout


def test_an_owner_that_does_not_fit_its_class(konverge: Konverge, tmp_path: Path) -> None:
    (tmp_path / "east.yaml").write_text(yaml.safe_dump(ward("default", colour=7)))

    done = konverge("preview", FILE, "east.yaml")

    check_one_line(done, 1, "Ward default/east: spec.colour: expected str, found int")


def test_a_component_whose_gate_is_off_wants_nothing(konverge: Konverge, tmp_path: Path, east: Path) -> None:
    gated = FILE.read_text().replace(".with_grace_period", ".with_feature_gate(BooleanGate(False))\n.with_grace_period")
    (tmp_path / "gated.py").write_text(gated.replace("from konverge import ", "from konverge import BooleanGate, "))

    done = konverge("preview", "gated.py", east)

    assert done.returncode == 0
    assert done.stderr == "konverge: component pages: applies nothing: its gate is disabled\n"
    assert "east-pages" not in done.stdout


def test_a_function_of_an_operators_own_has_no_preview(konverge: Konverge, tmp_path: Path, east: Path) -> None:
    own = FILE.read_text().replace(
        "operator.manages(Ward, settings, pages, mail, search)",
        "@operator.reconciles(Ward)\nasync def reconcile(ward, ctx): ...",
    )
    (tmp_path / "own.py").write_text(own)

    check_one_line(
        konverge("preview", "own.py", east),
        3,
        "Ward: expected components, found a reconcile function",
        "use konverge diff",
    )


@pytest.mark.anyio
@pytest.mark.real_time
async def test_an_owner_of_a_cluster(stuck: StuckOwner) -> None:
    await stuck.change(colour="red")

    done = await stuck.run("preview")

    settings, *_ = yaml.safe_load_all(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert settings["data"] == {"colour": "red"}
    assert stuck.list_verbs("preview") == {"get"}
