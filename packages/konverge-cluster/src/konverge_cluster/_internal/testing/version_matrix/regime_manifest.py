"""The manifest: a file that records the regimes, so that a diff shows each version that changes its regime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from konverge._internal.kube.yaml_loader import load_yaml
from konverge_cluster._internal.testing.golden.golden_run import read_golden
from konverge_cluster._internal.testing.golden.serialization import dump
from konverge_cluster._internal.testing.version_matrix.regimes import Firing, Regime, describe_differences

__all__ = ["MANIFEST", "describe_changes", "format_manifest", "read_regimes"]

MANIFEST = "manifest.yaml"
"""The name of the manifest in the matrix' folder."""

_HEAD = "# Versions that fire alike share a golden file. Written by: pytest --update-golden\n"


def format_manifest(regimes: Mapping[str, Sequence[Regime]]) -> str:
    """Return the manifest of these regimes, by fixture name."""
    fixtures = {
        name: [
            {
                "golden": f"{name}/{regime.first}.yaml",
                "versions": list(regime.versions),
                "fires": {identity: list(names) for identity, names in regime.firing},
            }
            for regime in group
        ]
        for name, group in regimes.items()
    }
    return _HEAD + dump([{"fixtures": fixtures}])


def read_regimes(path: Path) -> dict[str, dict[str, str]]:
    """Return the first version of each version's regime for each fixture; versions not in the manifest are absent.

    Raises:
        konverge.errors.ConfigurationError: The file exists and cannot be read.
    """
    text = read_golden(path) or ""
    try:
        return {
            name: {version: regime["versions"][0] for regime in regimes for version in regime["versions"]}
            for name, regimes in load_yaml(text)["fixtures"].items()
        }
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, IndexError):
        return {}  # only explains a difference: the comparison of the text decides


def describe_changes(
    fixture: str, recorded: Mapping[str, str], regimes: Sequence[Regime], firings: Mapping[str, Firing]
) -> Iterator[str]:
    """Yield one sentence for each version that changed its regime, with the difference in firing mutations.

    Args:
        fixture: The fixture's name.
        recorded: The first version of each version's regime, from `read_regimes`.
        regimes: The current regimes.
        firings: The firing mutations of each version now.
    """
    for regime in regimes:
        for version in regime.versions:
            before = recorded.get(version)
            if before is None or before == regime.first:
                continue
            change = f"fixture {fixture}: {version} moved from the regime of {before} to the regime of {regime.first}"
            if before in firings and (difference := describe_differences(firings[version], firings[before])):
                change += f". Compared with {before}: {difference}"
            yield change
