"""Loading of box files: YAML in, a frozen `OperatorBox` or every error with its position out.

A file contains one box. A box contains one or more custom resources, each with the steps of its pipeline. Loading
checks everything that needs no cluster: fields, types, Kubernetes' own fields, the syntax of expressions, the names
that each step may read, undeclared names and cycles. A loaded box needs no such check again, and its expressions
compile.

Short forms of resources are expanded: a `BoxResource` holds its object in the form of the Kubernetes API. Everything in
a file has a limit: size, depth, number of values after the expansion of aliases, length of texts.
"""

from konverge_box._internal.file.box_kinds import CUSTOM, KINDS, BoxKind, find_child_kind
from konverge_box._internal.file.crd_schemas import complete_schema
from konverge_box._internal.file.loader import find_file_errors, load_box
from konverge_box._internal.file.model import (
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
from konverge_box._internal.file.validation_errors import BoxFieldError, BoxFileError

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
