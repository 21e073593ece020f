"""Access of author functions that a run on an embedded cluster observed, and the part that no declaration covers. Pure.

An author's function has no declaration from which its access could be derived. konverge-cluster runs it for sample
owners and returns an `Observation`. It contains what the run did not reach, because only that makes it honest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from konverge._internal.operator.rbac_rules import AccessScope, ResourceAccess

__all__ = ["Observation", "ObservedAccess", "find_undeclared_access"]


class ObservedAccess(msgspec.Struct, frozen=True, order=True):
    """The verbs of a run for the objects of one resource.

    Args:
        group: The API group.
        resource: The plural, and after a slash the subresource.
        kind: The kind, as `Operator.uses` accepts it.
        verbs: The verbs, sorted.
        scope: The scope of the access: a name of `AccessScope`.
        namespace: The namespace for the scope ``NAMESPACE``; otherwise empty.
    """

    group: str
    resource: str
    kind: str
    verbs: tuple[str, ...]
    scope: str = AccessScope.OWNERS.name
    namespace: str = ""

    def to_access(self) -> ResourceAccess:
        """Return the access from which rules are built."""
        return ResourceAccess(self.group, self.resource, self.verbs, AccessScope[self.scope], namespace=self.namespace)

    def __str__(self) -> str:
        """Return the resource with its group, and the verbs."""
        resource, slash, subresource = self.resource.partition("/")
        return f"{resource}{'.' * bool(self.group)}{self.group}{slash}{subresource}: {', '.join(self.verbs)}"

    def format_declaration(self) -> str:
        """Return the call of `Operator.uses` that declares the access."""
        subresource = self.resource.partition("/")[2]
        arguments = [f'"{word}"' for word in (self.kind, *self.verbs)]
        if subresource:
            arguments.append(f'subresource="{subresource}"')
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"operator.uses({', '.join(arguments)}){where}"


class Observation(msgspec.Struct, frozen=True):
    """The result of a run of the author's functions for sample owners.

    Args:
        accesses: All access of the operator, sorted.
        gaps: One sentence for each function that did not run, and for each line that no sample owner reached.
    """

    accesses: tuple[ObservedAccess, ...] = ()
    gaps: tuple[str, ...] = ()


def find_undeclared_access(
    observed: Iterable[ObservedAccess], declared: Iterable[ResourceAccess]
) -> Iterator[ObservedAccess]:
    """Yield the observed access that the declared access does not include, with only the missing verbs."""
    covered: defaultdict[tuple[str, str, AccessScope, str], set[str]] = defaultdict(set)
    for use in declared:
        if not use.names:
            covered[use.group, use.resource, use.scope, use.namespace].update(use.verbs)
    for access in observed:
        use = access.to_access()
        verbs = set(access.verbs) - covered[use.group, use.resource, use.scope, use.namespace]
        verbs -= covered[use.group, use.resource, AccessScope.CLUSTER, ""]  # a ClusterRole, for every namespace
        if verbs:
            yield msgspec.structs.replace(access, verbs=tuple(sorted(verbs)))
