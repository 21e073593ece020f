"""What the server makes of a new pod: its quality-of-service class."""

from __future__ import annotations

import pytest

from konverge.kube import Object
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import IMAGE, POD, new

pytestmark = pytest.mark.anyio


def resources(requests: str = "", limits: str = "") -> Object:
    """Return resources from texts of the form ``cpu=1 memory=1Gi``."""
    parts = {"requests": requests, "limits": limits}
    return {name: dict(pair.split("=") for pair in text.split()) for name, text in parts.items() if text}


BOTH = "cpu=1 memory=1Gi"


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([resources()], "BestEffort"),
        ([resources("cpu=0", "memory=0")], "BestEffort"),
        ([resources("example.com/gpu=1", "example.com/gpu=1")], "BestEffort"),
        ([resources("cpu=1")], "Burstable"),
        ([resources("", "cpu=1")], "Burstable"),
        ([resources("", BOTH)], "Guaranteed"),
        ([resources("cpu=1000m memory=1024Mi", BOTH)], "Guaranteed"),
        ([resources("cpu=999m", BOTH)], "Burstable"),
        ([resources("cpu=0", BOTH)], "Burstable"),
        ([resources(BOTH, BOTH), resources()], "Burstable"),
        ([resources(BOTH, BOTH), resources(BOTH, BOTH)], "Guaranteed"),
    ],
)
async def test_the_class_of_a_pod_follows_from_its_resources(
    cluster: Cluster, containers: list[Object], expected: str
) -> None:
    entries = [{"name": f"c{index}", "image": IMAGE, "resources": each} for index, each in enumerate(containers)]

    pod = await cluster.client.create(new(POD, cluster.namespace, "one", spec={"containers": entries}), dry_run=True)

    assert pod["status"]["qosClass"] == expected
