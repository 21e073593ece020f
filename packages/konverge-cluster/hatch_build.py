"""Puts the demo's example into what is built: the repository's examples/webapp, in an sdist the sdist's own copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # of which builder says target_name
    """Adds the example. An editable install needs none: the demo looks into the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before each build."""
        if version == "editable":
            return
        root = Path(self.root)
        copy = root / "webapp"
        example = copy if copy.is_dir() else root.parents[1] / "examples" / "webapp"
        target = "webapp" if self.target_name == "sdist" else "konverge_cluster/cli/webapp"
        build_data["force_include"][str(example)] = target
