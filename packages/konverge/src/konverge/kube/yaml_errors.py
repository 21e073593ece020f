"""What is refused of YAML from outside, in words of ours.

A module of its own: `konverge.kube.yaml_limits` is there without libyaml, too, which the loader needs.
"""

from __future__ import annotations

import yaml

__all__ = ["ObjectYAMLError", "TooManyValuesError"]


class ObjectYAMLError(yaml.MarkedYAMLError):
    """A text is YAML, and still refused. Its problem can be shown: it quotes nothing of the text, as libyaml's can."""


class TooManyValuesError(ObjectYAMLError):
    """A document's aliases stand for more values than are allowed."""
