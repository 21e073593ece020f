"""Build hook that adds the demo's example: examples/webapp of the repository, or the copy in an sdist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # the class of the builder is only known from target_name
    """Build hook for the example. An editable install needs none: the demo uses the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the example to the files of a build."""
        if version == "editable":
            return
        root = Path(self.root)
        copy = root / "webapp"
        example = copy if copy.is_dir() else root.parents[1] / "examples" / "webapp"
        target = "webapp" if self.target_name == "sdist" else "konverge_cluster/cli/webapp"
        build_data["force_include"][str(example)] = target
