"""A rehearsal: what a pass of a component would do and say now, and why, without writing anything.

In go a component, its owner and a client; out comes a `Rehearsal`: the objects that would be written, field by field,
with who owns the fields now; and the story: gate, prerequisites, guards, the fields that decided over each resource's
health, the rule that made the condition, and what happens next. ``konverge diff`` and ``konverge explain`` show it.

It is the engine itself that runs, over a client that turns each apply into a dry run of the server's and only notes
deletions and updates (`RehearsingClient`), and over a component whose parts take note of what they are asked. So a
rehearsal cannot differ from the pass that it rehearses, but for what else happens meanwhile.
"""

from konverge.component.rehearsal.client import DryRunServer, RehearsingClient
from konverge.component.rehearsal.rehearsing import Rehearsing, rehearse
from konverge.component.rehearsal.values import (
    Change,
    Contest,
    FieldChange,
    Judgement,
    PrerequisiteStory,
    Reading,
    Rehearsal,
    Reported,
    ResourceStory,
    Writer,
)

__all__ = [
    "Change",
    "Contest",
    "DryRunServer",
    "FieldChange",
    "Judgement",
    "PrerequisiteStory",
    "Reading",
    "Rehearsal",
    "Rehearsing",
    "RehearsingClient",
    "Reported",
    "ResourceStory",
    "Writer",
    "rehearse",
]
