"""The behavior of simulated containers by image: ready at once, ready later, never ready, or crashing.

No image is pulled and no container runs. A test sets the behavior for an image pattern, and can change it while the
cluster runs. Three patterns always exist, with the lowest priority:

    konverge.test/never-ready*    never becomes ready (its image cannot be pulled)
    konverge.test/slow*           becomes ready after 3 seconds
    konverge.test/failing*        starts and exits with 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

__all__ = ["BehaviorName", "ContainerBehavior", "ImageRules"]

BehaviorName: TypeAlias = Literal["ready", "never-ready", "failing"]


@dataclass(frozen=True, slots=True)
class ContainerBehavior:
    """The behavior of the containers of an image.

    Attributes:
        name: ``ready``; ``never-ready``: the image cannot be pulled; ``failing``: it starts and exits with 1.
        after_seconds: For ``ready``: the seconds from the pod's arrival on its node.
    """

    name: BehaviorName
    after_seconds: float = 0.0


READY = ContainerBehavior("ready")
NEVER_READY = ContainerBehavior("never-ready")
FAILING = ContainerBehavior("failing")

_BUILT_IN = (
    ("konverge.test/never-ready*", NEVER_READY),
    ("konverge.test/slow*", ContainerBehavior("ready", 3.0)),
    ("konverge.test/failing*", FAILING),
)


class ImageRules:
    """The rules, the latest first. Patterns are shell patterns (``*``, ``?``, ``[abc]``) for the whole image."""

    def __init__(self) -> None:
        self._rules: dict[str, ContainerBehavior] = {}
        self._subscribers: list[Callable[[], None]] = []

    def ready(self, pattern: str) -> None:
        """Make containers of matching images ready at once, also waiting ones."""
        self._set_rule(pattern, READY)

    def ready_after(self, pattern: str, seconds: float) -> None:
        """Start containers of matching images at once and make them ready some seconds after their pod has a node.

        Raises:
            ValueError: The number is negative.
        """
        if seconds < 0:
            raise ValueError(f"ready_after needs zero or more seconds (found {seconds})")
        self._set_rule(pattern, ContainerBehavior("ready", seconds))

    def never_ready(self, pattern: str) -> None:
        """Let containers of matching images wait with ``ImagePullBackOff``; running containers continue."""
        self._set_rule(pattern, NEVER_READY)

    def failing(self, pattern: str) -> None:
        """Let containers of matching images wait with ``CrashLoopBackOff``, also running ones."""
        self._set_rule(pattern, FAILING)

    def forget(self, pattern: str) -> None:
        """Remove the rule for exactly that pattern; an unknown pattern is ignored."""
        if self._rules.pop(pattern, None) is not None:
            self._notify()

    def behavior_for(self, image: str) -> ContainerBehavior:
        """Return the behavior from the latest matching rule; without one, ready at once."""
        for pattern, behavior in reversed(self._rules.items()):
            if fnmatchcase(image, pattern):
                return behavior
        for pattern, behavior in _BUILT_IN:
            if fnmatchcase(image, pattern):
                return behavior
        return READY

    def subscribe(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call a function after each change of the rules; the returned function ends this."""
        self._subscribers.append(on_change)
        return lambda: self._subscribers.remove(on_change)

    def _set_rule(self, pattern: str, behavior: ContainerBehavior) -> None:
        self._rules.pop(pattern, None)  # a rule that is set again becomes the latest
        self._rules[pattern] = behavior
        self._notify()

    def _notify(self) -> None:
        for on_change in tuple(self._subscribers):
            on_change()
