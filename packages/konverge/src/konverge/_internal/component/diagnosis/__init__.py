"""Diagnosis of late workloads: the causes that the status of the workload itself does not contain.

A Deployment whose pods cannot start reports only "0/2 ready". The cause is in the status of its pods, in their claims
and in events: an image that cannot be pulled, an unbound claim, a quota. The input is a live object that is not ready,
the output is a list of causes, one sentence each.

Invariants: a healthy owner costs no request, because only the objects of a component that is late are examined
(`ExaminationSchedule`); an examination has a maximum number of requests, and a failed one never fails a reconcile;
nothing is cached or watched.
"""

from konverge._internal.component.diagnosis.diagnosis import (
    CLAIM,
    EVENT,
    POD,
    WORKLOADS,
    Diagnosis,
    DiagnosisReader,
    is_examined,
)
from konverge._internal.component.diagnosis.examination_schedule import ExaminationSchedule

__all__ = [
    "CLAIM",
    "EVENT",
    "POD",
    "WORKLOADS",
    "Diagnosis",
    "DiagnosisReader",
    "ExaminationSchedule",
    "is_examined",
]
