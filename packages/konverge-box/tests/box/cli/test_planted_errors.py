"""Forty planted errors in a valid box and simulation: each is reported with line, column and suggestion.

The marker « in a replacement is the expected position; it is removed before the file is checked.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from konverge_box._internal.cli.box import box

MARK = "«"

BOX = """\
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata:
  name: shop
spec:
  providers:
    postgres:
      settings: {host: db.example.com, port: 5432, user: postgres}
      secretRefs:
        password: {name: postgres-server, key: password}
  crds:
    database:
      resource:
        apiVersion: shop.example.com/v1
        kind: Database
        schema:
          spec:
            required: [size]
            properties:
              size: {type: integer, minimum: 1, default: 10}
              engine: {type: string, enum: [postgres, mysql], default: postgres}
              limits:
                properties:
                  cpu: {type: string}
                default: {cpu: 500m}
          status:
            properties:
              host: {type: string}
              ready: {type: boolean}
      onReconcile:
        persistentVolumeClaims:
          - storage: 1Gi
            accessModes: [ReadWriteOnce]
            when: [{field: spec.engine, equals: mysql}]
      status:
        fields:
          - path: host
            value: "{{ metadata.name }}.example.com"
          - path: ready
            value: true
    store:
      resource:
        apiVersion: shop.example.com/v1
        kind: Store
        additionalPrinterColumns:
          - {name: Phase, type: string, jsonPath: .status.phase}
        schema:
          spec:
            required: [image]
            properties:
              image: {type: string}
              replicas: {type: integer}
              title: {type: string}
              hosts: {items: {type: string}}
          status:
            properties:
              phase: {type: string}
      mutation:
        - field: spec.replicas
          default: 2
      validation:
        - field: spec.image
          notSuffix: ":latest"
          message: name a version, not latest
      cross:
        - crd: database
          selector: {name: "{{ metadata.name }}"}
      external:
        - name: licence
          url: "https://licences.example.com/{{ metadata.name }}"
          continueOnError: true
      onReconcile:
        - name: config
          configMaps:
            - data:
                database: "{{ cross.database.status.host | default('') }}"
                licence: "{{ external.licence.result | default('') }}"
                title: "{{ spec.title | default('shop') | toUpper }}"
        - name: web
          waitsFor: [config]
          deployments:
            - image: "{{ spec.image }}"
              replicas: "{{ spec.replicas }}"
              port: 8080
              labels: {tier: web}
              resources: {limits: {memory: 512Mi}}
              imagePullPolicy: Always
              volumes: [{name: data, emptyDir: {}}]
              volumeMounts: [{name: data, mountPath: /data}]
          services:
            - port: 80
              targetPort: 8080
          ingresses:
            - name: "{{ metadata.name }}-{{ index }}"
              forEach: {field: spec.hosts, as: host}
              host: "{{ host }}"
              path: /shop
            - name: admin
              host: admin.example.com
          cronJobs:
            - name: "{{ metadata.name }}-report"
              image: registry.example.com/report:1
              schedule: "0 * * * *"
      providers:
        postgres:
          - kind: Database
            name: data
            spec: {name: "{{ metadata.name }}", owner: postgres}
      status:
        fields:
          - path: phase
            value: Pending
            when: [{field: status.phase, notExists: true}]
"""

SIMULATION = """\
apiVersion: konverge.dev/v1alpha1
kind: Simulation
metadata:
  name: shop
spec:
  box: box.yaml
  answers:
    licence: {status: 200, json: {}}
  steps:
    - name: It is created
      apply:
        - apiVersion: shop.example.com/v1
          kind: Store
          metadata: {name: main}
          spec: {image: "registry.example.com/shop:1"}
      expect:
        objects:
          - kind: Store
            name: main
            conditions: {Ready: "False"}
"""

IN_BOX = {
    # Schemas and defaults.
    "a default of another type": ("default: 10}", "«default: ten}", "expected a whole number, found a string"),
    "a default outside of an enum": ("default: postgres}", "«default: postgress}", "did you mean postgres?"),
    "a default below the minimum": ("default: 10}", "«default: 0}", "expected at least 1, found 0"),
    "a field of a default of another type": ("{cpu: 500m}", "{«cpu: 2}", "expected a string, found a number; quote it"),
    "a required field that is not declared": ("[size]", "[«sise]", "did you mean size?"),
    "a mutation of another type": ("default: 2\n", "«default: two\n", "expected a whole number, found a string"),
    "a mutation of an unknown field": ("field: spec.replicas\n", "«field: spec.replica\n", "did you mean replicas?"),
    "a column of an unknown field": ("jsonPath: .status.phase", "«jsonPath: .status.phas", "did you mean phase?"),
    # Status and other custom resources.
    "a status field outside of the schema": ("path: host", "«path: hots", "did you mean host?"),
    "a status value of another type": ("value: true", '«value: "yes"', "expected true or false, found a string"),
    "an unknown field of another status": (
        '    database: "{{ cross.database.status.host',
        '    «database: "{{ cross.database.status.hots',
        "did you mean host?",
    ),
    "an observation that is not declared": (
        '    database: "{{ cross.database.',
        '    «database: "{{ cross.databse.',
        "did you mean database?",
    ),
    "an unknown field of the own status": ("{field: status.phase", "{«field: status.phas", "did you mean phase?"),
    "an unknown field of the spec": ('image: "{{ spec.image', '«image: "{{ spec.imag', "did you mean image?"),
    "a call that is not declared": (
        'licence: "{{ external.licence',
        '«licence: "{{ external.license',
        "did you mean licence?",
    ),
    "a loop over a text": ("{field: spec.hosts", "{«field: spec.title", "expected a list or a map, found a string"),
    "a comparison with no value of the enum": ("equals: mysql}", "«equals: mysqll}", "did you mean mysql?"),
    # Ports, names and values that no server takes.
    "a port above the last one": ("port: 8080\n", "«port: 80800\n", "expected a port from 1 to 65535, found 80800"),
    "a name in capitals": ("- name: admin", "- «name: Admin", "did you mean admin?"),
    "a name with an underscore": (
        'name: "{{ metadata.name }}-report"',
        '«name: "{{ metadata.name }}_report"',
        "did you mean {{ metadata.name }}-report?",
    ),
    "a label with a space": ("{tier: web}", "{«tier: front end}", "did you mean front-end?"),
    "a key with a space": ('    title: "{{', '    «site title: "{{', "did you mean site-title?"),
    "a schedule in words": ('schedule: "0 * * * *"', "«schedule: hourly", "did you mean @hourly?"),
    "a quantity of another unit": ("memory: 512Mi", "«memory: 512MB", "did you mean 512M?"),
    "a word of an enum": ("imagePullPolicy: Always", "«imagePullPolicy: Allways", "did you mean Always?"),
    "a word of an enum in a list": ("[ReadWriteOnce]", "[«ReadwriteOnce]", "did you mean ReadWriteOnce?"),
    "a URL as a host": (
        "host: admin.example.com",
        '«host: "https://admin.example.com"',
        "did you mean admin.example.com?",
    ),
    "a mount of no volume": ("[{name: data, mountPath", "[{«name: date, mountPath", "did you mean data?"),
    "a path without a slash": ("path: /shop", "«path: shop", "did you mean /shop?"),
    # Names in the box, functions, calls and providers.
    "a group that there is not": ("waitsFor: [config]", "waitsFor: [«confg]", "did you mean config?"),
    "a function that there is not": (
        "title: \"{{ spec.title | default('shop') | toUpper",
        "«title: \"{{ spec.title | default('shop') | toUper",
        "did you mean toUpper?",
    ),
    "a URL without a scheme": ('url: "https://licences', '«url: "licences', "did you mean https://licences"),
    "a provider's kind": (
        "- kind: Database\n            name: data",
        "- «kind: Databse\n            name: data",
        "did you mean Database?",
    ),
    "a provider's field": ("owner: postgres}", "«ownr: postgres}", "did you mean owner?"),
    # YAML.
    "a tab": ("      settings: {host", "«\t  settings: {host", "indent with spaces"),
    "an expression without quotes": (
        'replicas: "{{ spec.replicas }}"',
        "replicas: «{{ spec.replicas }}",
        'put the expression in quotes: "{{ ... }}"',
    ),
}

IN_SIMULATION = {
    "a field of a step": ("      expect:", "      «expects:", "did you mean expect?"),
    "a condition that no box writes": ("{Ready: ", "{«Redy: ", "did you mean Ready?"),
    "a field of an object that is applied": ("{image: ", "{«imag: ", "did you mean image?"),
    "an answer of no call": ("    licence: {", "    «license: {", "did you mean licence?"),
}


def find_errors(folder: Path, name: str) -> list[tuple[int, int, str]]:
    """Return line, column and message of each error that the command reports."""
    result = CliRunner().invoke(box, ["lint", "--output", "json", str(folder / name)])
    assert result.exit_code in (0, 1), result.output
    return [(each["line"], each["column"], each["message"]) for each in json.loads(result.stdout)["errors"]]


def plant(text: str, old: str, new: str) -> tuple[str, int, int]:
    """Return the text with the error, and the line and column of the marker."""
    assert text.count(old) >= 1, old
    changed = text.replace(old, new, 1)
    before = changed[: changed.index(MARK)]
    return changed.replace(MARK, "", 1), before.count("\n") + 1, len(before) - before.rfind("\n")


def test_the_files_without_planted_errors_are_valid(tmp_path: Path) -> None:
    (tmp_path / "box.yaml").write_text(BOX)
    (tmp_path / "simulate.yaml").write_text(SIMULATION)

    assert find_errors(tmp_path, "box.yaml") == []
    assert find_errors(tmp_path, "simulate.yaml") == []
    assert len(IN_BOX) + len(IN_SIMULATION) == 40


@pytest.mark.parametrize("planted", IN_BOX)
def test_an_error_of_a_box_has_line_column_and_suggestion(planted: str, tmp_path: Path) -> None:
    old, new, suggestion = IN_BOX[planted]
    text, line, column = plant(BOX, old, new)
    (tmp_path / "box.yaml").write_text(text)

    errors = find_errors(tmp_path, "box.yaml")

    assert any(at[:2] == (line, column) and suggestion in at[2] for at in errors), (line, column, errors)


@pytest.mark.parametrize("planted", IN_SIMULATION)
def test_an_error_of_a_simulation_has_line_column_and_suggestion(planted: str, tmp_path: Path) -> None:
    old, new, suggestion = IN_SIMULATION[planted]
    text, line, column = plant(SIMULATION, old, new)
    (tmp_path / "box.yaml").write_text(BOX)
    (tmp_path / "simulate.yaml").write_text(text)

    errors = find_errors(tmp_path, "simulate.yaml")

    assert any(at[:2] == (line, column) and suggestion in at[2] for at in errors), (line, column, errors)
