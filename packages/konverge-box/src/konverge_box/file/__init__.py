"""The file of an operator box: YAML in, a frozen `OperatorBox` or every mistake with its place out.

A file has one box, a box one or many custom resources, each with the steps of its pipeline. Loading decides all that
can be decided without a cluster: fields, types, Kubernetes' own fields, syntax of expressions, what each step may read,
names that nobody declares, circles. What is loaded needs no such check again, and texts that hold expressions compile.

Short forms of resources are written out: a `Resource` has its object as Kubernetes has it. Nothing of a file is
unbounded: size, depth, values behind aliases, texts.
"""

from konverge_box.file.box_kinds import CUSTOM, KINDS, BoxKind, find_child_kind
from konverge_box.file.crd_schemas import complete_schema
from konverge_box.file.loader import find_file_errors, load_box
from konverge_box.file.model import (
    BoxMetadata,
    BoxResource,
    BoxSpec,
    CallAuthentication,
    ComparisonSpec,
    ConditionalEntry,
    ConditionSpec,
    CrossEntry,
    CustomResource,
    DeleteGroup,
    DeleteTarget,
    ExternalCall,
    ForEach,
    Group,
    MutationRule,
    NormalizeSpec,
    ObjectReference,
    OnDelete,
    OperatorBox,
    ProviderItem,
    ProviderSettings,
    ReconcileSpec,
    ResourceType,
    RetrySpec,
    SecretKey,
    Selector,
    StatusField,
    StatusSpec,
    TimeWindow,
    TlsSpec,
    ValidationRule,
)
from konverge_box.file.validation_errors import BoxFieldError, BoxFileError

__all__ = [
    "CUSTOM",
    "KINDS",
    "BoxFieldError",
    "BoxFileError",
    "BoxKind",
    "BoxMetadata",
    "BoxResource",
    "BoxSpec",
    "CallAuthentication",
    "ComparisonSpec",
    "ConditionSpec",
    "ConditionalEntry",
    "CrossEntry",
    "CustomResource",
    "DeleteGroup",
    "DeleteTarget",
    "ExternalCall",
    "ForEach",
    "Group",
    "MutationRule",
    "NormalizeSpec",
    "ObjectReference",
    "OnDelete",
    "OperatorBox",
    "ProviderItem",
    "ProviderSettings",
    "ReconcileSpec",
    "ResourceType",
    "RetrySpec",
    "SecretKey",
    "Selector",
    "StatusField",
    "StatusSpec",
    "TimeWindow",
    "TlsSpec",
    "ValidationRule",
    "complete_schema",
    "find_child_kind",
    "find_file_errors",
    "load_box",
]
