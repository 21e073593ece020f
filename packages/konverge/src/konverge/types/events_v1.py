"""The objects of io.k8s.api.events.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import core_v1, meta_v1


class EventSeries(TypedDict, total=False):
    count: Required[int]
    lastObservedTime: Required[str]


class Event(TypedDict, total=False):
    apiVersion: Literal["events.k8s.io/v1"]
    kind: Literal["Event"]
    metadata: meta_v1.ObjectMeta
    action: str
    deprecatedCount: int
    deprecatedFirstTimestamp: str
    deprecatedLastTimestamp: str
    deprecatedSource: core_v1.EventSource
    eventTime: Required[str]
    note: str
    reason: str
    regarding: core_v1.ObjectReference
    related: core_v1.ObjectReference
    reportingController: str
    reportingInstance: str
    series: EventSeries
    type: str
