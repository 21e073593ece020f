# The names of `__init__.py` for type checkers; a test compares the two files.

from konverge.cache import CacheOptions as CacheOptions
from konverge.component import Component as Component
from konverge.component import ComponentBuilder as ComponentBuilder
from konverge.component import Prerequisite as Prerequisite
from konverge.component import ReconcileContext as ReconcileContext
from konverge.crd import CelRule as CelRule
from konverge.crd import Metadata as Metadata
from konverge.crd import PrintColumn as PrintColumn
from konverge.crd import Scale as Scale
from konverge.crd import custom_resource as custom_resource
from konverge.errors import KonvergeError as KonvergeError
from konverge.errors import NotFoundError as NotFoundError
from konverge.errors import TerminalError as TerminalError
from konverge.feature import BooleanGate as BooleanGate
from konverge.feature import Gate as Gate
from konverge.feature import VersionGate as VersionGate
from konverge.feature import VersionRange as VersionRange
from konverge.kube import Condition as Condition
from konverge.kube import GroupVersionKind as GroupVersionKind
from konverge.kube import Object as Object
from konverge.kube import ObjectKey as ObjectKey
from konverge.mutation import Mutation as Mutation
from konverge.mutation import WorkloadMutator as WorkloadMutator
from konverge.operator import Change as Change
from konverge.operator import Operator as Operator
from konverge.operator import OwnerContext as OwnerContext
from konverge.operator import Result as Result
from konverge.operator import RunOptions as RunOptions
from konverge.operator import generation_changed as generation_changed
from konverge.operator import kind_of as kind_of
from konverge.operator import labels_changed as labels_changed
from konverge.operator.webhook_registry import AdmissionRequest as AdmissionRequest
from konverge.primitives import Data as Data
from konverge.runtime.election import LeaderElection as LeaderElection
from konverge.runtime.election import Sharding as Sharding
from konverge.runtime.observability import ObservabilityOptions as ObservabilityOptions
from konverge.runtime.webhooks import AdmissionDeniedError as AdmissionDeniedError
from konverge.runtime.webhooks import Violation as Violation
from konverge.runtime.webhooks import WebhookOptions as WebhookOptions

__all__: list[str]
