"""What becomes of a container, decided by its image: ready at once, ready later, never, or crashing.

Nothing is ever pulled or run. A test says by image pattern how the containers of that image behave, and may change its
mind while the cluster runs. Three patterns are always there, as last resort:

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
    """How the containers of an image behave.

    Attributes:
        name: ``ready``; ``never-ready``: the image cannot be pulled; ``failing``: it starts and exits with 1.
        after_seconds: For ``ready``: how long it takes from the moment at which the pod came to its node.
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
    """The rules, the latest first. Patterns are a shell's (``*``, ``?``, ``[abc]``) and match the whole image."""

    def __init__(self) -> None:
        self._rules: dict[str, ContainerBehavior] = {}
        self._subscribers: list[Callable[[], None]] = []

    def ready(self, pattern: str) -> None:
        """Containers of matching images become ready at once, also those that wait."""
        self._set_rule(pattern, READY)

    def ready_after(self, pattern: str, seconds: float) -> None:
        """Containers of matching images run at once and are ready so many seconds after their pod came to its node.

        Raises:
            ValueError: The number is negative.
        """
        if seconds < 0:
            raise ValueError(f"ready_after needs zero or more seconds (found {seconds})")
        self._set_rule(pattern, ContainerBehavior("ready", seconds))

    def never_ready(self, pattern: str) -> None:
        """Containers of matching images wait with ``ImagePullBackOff``; one that already runs goes on running."""
        self._set_rule(pattern, NEVER_READY)

    def failing(self, pattern: str) -> None:
        """Containers of matching images wait with ``CrashLoopBackOff``, also those that already ran."""
        self._set_rule(pattern, FAILING)

    def forget(self, pattern: str) -> None:
        """Take the rule of that very pattern back; unknown patterns are no mistake."""
        if self._rules.pop(pattern, None) is not None:
            self._notify()

    def behavior_for(self, image: str) -> ContainerBehavior:
        """What the latest matching rule says; ready at once when none matches."""
        for pattern, fate in reversed(self._rules.items()):
            if fnmatchcase(image, pattern):
                return fate
        for pattern, fate in _BUILT_IN:
            if fnmatchcase(image, pattern):
                return fate
        return READY

    def subscribe(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Have each change of the rules told; the answer ends it."""
        self._subscribers.append(on_change)
        return lambda: self._subscribers.remove(on_change)

    def _set_rule(self, pattern: str, fate: ContainerBehavior) -> None:
        self._rules.pop(pattern, None)  # a rule that is given again counts as the latest
        self._rules[pattern] = fate
        self._notify()

    def _notify(self) -> None:
        for told in tuple(self._subscribers):
            told()
