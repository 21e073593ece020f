# The names of `__init__.py` for type checkers; a test compares the two files.

from konverge._internal.cache import CacheOptions as CacheOptions
from konverge._internal.component import Component as Component
from konverge._internal.component import ComponentBuilder as ComponentBuilder
from konverge._internal.component import Prerequisite as Prerequisite
from konverge._internal.component import ReconcileContext as ReconcileContext
from konverge._internal.crd import CelRule as CelRule
from konverge._internal.crd import Metadata as Metadata
from konverge._internal.crd import PrintColumn as PrintColumn
from konverge._internal.crd import Scale as Scale
from konverge._internal.crd import custom_resource as custom_resource
from konverge._internal.feature import BooleanGate as BooleanGate
from konverge._internal.feature import Gate as Gate
from konverge._internal.feature import VersionGate as VersionGate
from konverge._internal.feature import VersionRange as VersionRange
from konverge._internal.kube import Condition as Condition
from konverge._internal.kube import GroupVersionKind as GroupVersionKind
from konverge._internal.kube import Object as Object
from konverge._internal.kube import ObjectKey as ObjectKey
from konverge._internal.mutation import Mutation as Mutation
from konverge._internal.mutation import WorkloadMutator as WorkloadMutator
from konverge._internal.operator import Change as Change
from konverge._internal.operator import Operator as Operator
from konverge._internal.operator import OwnerContext as OwnerContext
from konverge._internal.operator import Result as Result
from konverge._internal.operator import RunOptions as RunOptions
from konverge._internal.operator import generation_changed as generation_changed
from konverge._internal.operator import kind_of as kind_of
from konverge._internal.operator import labels_changed as labels_changed
from konverge._internal.operator.webhook_registry import AdmissionRequest as AdmissionRequest
from konverge._internal.primitives import Data as Data
from konverge._internal.runtime.election import LeaderElection as LeaderElection
from konverge._internal.runtime.election import Sharding as Sharding
from konverge._internal.runtime.observability import ObservabilityOptions as ObservabilityOptions
from konverge._internal.runtime.webhooks import AdmissionDeniedError as AdmissionDeniedError
from konverge._internal.runtime.webhooks import Violation as Violation
from konverge._internal.runtime.webhooks import WebhookOptions as WebhookOptions
from konverge.errors import KonvergeError as KonvergeError
from konverge.errors import NotFoundError as NotFoundError
from konverge.errors import TerminalError as TerminalError

__all__: list[str]
