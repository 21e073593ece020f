"""The file of an operator box: YAML in, a frozen `OperatorBox` or every mistake with its place out.

A file has one box, a box one or many custom resources, each with the steps of its pipeline. Loading decides all that
can be decided without a cluster: fields, types, Kubernetes' own fields, syntax of expressions, what each step may read,
names that nobody declares, circles. What is loaded needs no such check again, and texts that hold expressions compile.

Short forms of resources are written out: a `Resource` has its object as Kubernetes has it. Nothing of a file is
unbounded: size, depth, values behind aliases, texts.
"""

from konverge.box.file.kinds import CUSTOM, KINDS, BoxKind, kind_of_child
from konverge.box.file.loading import find_mistakes, load_box
from konverge.box.file.mistakes import BoxFileError, Mistake
from konverge.box.file.model import (
    BoxMetadata,
    BoxSpec,
    CallAuthentication,
    Comparison,
    Condition,
    Conditional,
    Cross,
    CustomResource,
    DeleteGroup,
    DeleteTarget,
    ExternalCall,
    ForEach,
    Group,
    MutationRule,
    Normalize,
    ObjectReference,
    OnDelete,
    OperatorBox,
    ProviderItem,
    ProviderSettings,
    Reconcile,
    Resource,
    ResourceType,
    Retry,
    SecretKey,
    Selector,
    Status,
    StatusField,
    TimeWindow,
    Tls,
    ValidationRule,
)
from konverge.box.file.schemas import complete

__all__ = [
    "CUSTOM",
    "KINDS",
    "BoxFileError",
    "BoxKind",
    "BoxMetadata",
    "BoxSpec",
    "CallAuthentication",
    "Comparison",
    "Condition",
    "Conditional",
    "Cross",
    "CustomResource",
    "DeleteGroup",
    "DeleteTarget",
    "ExternalCall",
    "ForEach",
    "Group",
    "Mistake",
    "MutationRule",
    "Normalize",
    "ObjectReference",
    "OnDelete",
    "OperatorBox",
    "ProviderItem",
    "ProviderSettings",
    "Reconcile",
    "Resource",
    "ResourceType",
    "Retry",
    "SecretKey",
    "Selector",
    "Status",
    "StatusField",
    "TimeWindow",
    "Tls",
    "ValidationRule",
    "complete",
    "find_mistakes",
    "kind_of_child",
    "load_box",
]
