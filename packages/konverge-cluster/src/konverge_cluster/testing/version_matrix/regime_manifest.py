"""The manifest: a file that records the regimes, so that a version which changes its own shows, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from konverge.kube.yaml_loader import load_yaml
from konverge_cluster.testing.golden.golden_run import read_golden
from konverge_cluster.testing.golden.serialization import dump
from konverge_cluster.testing.version_matrix.regimes import Firing, Regime, describe_differences

__all__ = ["MANIFEST", "describe_changes", "format_manifest", "read_regimes"]

MANIFEST = "manifest.yaml"
"""Its name in the matrix' folder."""

_HEAD = "# Versions that fire alike share a golden file. Written by: pytest --update-golden\n"


def format_manifest(regimes: Mapping[str, Sequence[Regime]]) -> str:
    """The manifest of these regimes, by the name of their fixture."""
    fixtures = {
        name: [
            {
                "golden": f"{name}/{regime.first}.yaml",
                "versions": list(regime.versions),
                "fires": {identity: list(names) for identity, names in regime.firing},
            }
            for regime in found
        ]
        for name, found in regimes.items()
    }
    return _HEAD + dump([{"fixtures": fixtures}])


def read_regimes(path: Path) -> dict[str, dict[str, str]]:
    """For each fixture of a manifest, the first version of each version's regime; what it does not say is left out.

    Raises:
        konverge.errors.ConfigurationError: There is a file, and it cannot be read.
    """
    text = read_golden(path) or ""
    try:
        return {
            name: {version: regime["versions"][0] for regime in regimes for version in regime["versions"]}
            for name, regimes in load_yaml(text)["fixtures"].items()
        }
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, IndexError):
        return {}  # it only explains: what decides is the comparison of the text


def describe_changes(
    fixture: str, recorded: Mapping[str, str], regimes: Sequence[Regime], firings: Mapping[str, Firing]
) -> Iterator[str]:
    """Which versions have changed their regime, and what fires differently there; one sentence each.

    Args:
        fixture: The fixture's name.
        recorded: The first version of each version's regime, as `read_regimes` found it.
        regimes: The regimes now.
        firings: What fires at each version now.
    """
    for regime in regimes:
        for version in regime.versions:
            before = recorded.get(version)
            if before is None or before == regime.first:
                continue
            told = f"fixture {fixture}: {version} was in the regime of {before} and is in that of {regime.first}"
            if before in firings and (difference := describe_differences(firings[version], firings[before])):
                told += f". Unlike {before}: {difference}"
            yield told
