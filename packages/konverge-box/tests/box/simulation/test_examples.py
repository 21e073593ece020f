"""The examples, each with its simulation, on both clusters."""

from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from konverge.clock import SeededEntropy, SystemEntropy
from konverge_box._internal.cli.box_simulate import box_simulate
from konverge_box._internal.simulation import SimulatedCluster, StepReport, load_simulation, simulate
from konverge_cluster.testing import Cluster
from tests.database_servers import PostgresServer

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[5] / "examples" / "boxes"
FOLDERS = sorted(file.parent.name for file in EXAMPLES.glob("*/simulate.yaml"))
WITH_SERVERS = {"provider"}


def build_simulated_cluster(cluster: Cluster) -> SimulatedCluster:
    return SimulatedCluster(
        client=cluster.client,
        transport=cluster.new_transport(),
        clock=cluster.clock,
        entropy=SeededEntropy(3),
        namespace=cluster.namespace,
        is_embedded=cluster.name == "embedded",
    )


@pytest.mark.slow
@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in WITH_SERVERS])
async def test_the_example_does_what_its_simulation_expects(folder: str, cluster: Cluster) -> None:
    loaded = load_simulation(EXAMPLES / folder / "simulate.yaml", namespace=cluster.namespace)
    reports: list[StepReport] = []

    await simulate(loaded, build_simulated_cluster(cluster), on_report=reports.append)

    assert len(reports) == len(loaded.simulation.spec.steps)
    assert {report.name: report.failures for report in reports if report.failures} == {}
    # A simulation that skips every step would prove nothing.
    assert any(not report.skipped for report in reports)


@pytest.mark.slow
@pytest.mark.real_time
async def test_the_provider_example_makes_a_database_and_drops_it(
    cluster: Cluster, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    tenant = f"t{SystemEntropy().name_suffix(8)}"  # all cases share the server
    write_provider_example(tmp_path, postgres_server, tenant)
    loaded = load_simulation(tmp_path / "simulate.yaml", namespace=cluster.namespace)
    reports: list[StepReport] = []
    databases: list[list[str]] = []

    def look(report: StepReport) -> None:
        reports.append(report)
        with psycopg.connect(postgres_server.conninfo()) as connection:
            rows = connection.execute("SELECT datname FROM pg_database WHERE datname = %s", [tenant]).fetchall()
            databases.append([name for (name,) in rows])

    await simulate(loaded, build_simulated_cluster(cluster), on_report=look)

    assert [report.failures for report in reports] == [(), ()]
    assert databases == [[tenant], []]


@pytest.mark.slow
@pytest.mark.embedded
def test_the_command_runs_the_provider_example_where_its_server_is(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    tenant = f"t{SystemEntropy().name_suffix(8)}"
    address = f"{postgres_server.host}:{postgres_server.port}"
    write_provider_example(tmp_path, postgres_server, tenant)
    (tmp_path / "simulate.yaml").write_text((tmp_path / "simulate.yaml").read_text().replace("127.0.0.1:5432", address))

    result = CliRunner().invoke(box_simulate, [str(tmp_path)])

    assert result.exit_code == 0, result.output
    assert f"Tenant/{tenant}: Ready True" in result.stdout


def write_provider_example(folder: Path, server: PostgresServer, tenant: str) -> None:
    """Write the provider example for another server and with another tenant."""
    settings = f"host: {server.host}, port: {server.port}, user: {server.user}"
    for file in (EXAMPLES / "provider").glob("*.yaml"):
        text = file.read_text().replace("host: 127.0.0.1, port: 5432, user: postgres", settings)
        text = text.replace("password: postgres", f"password: {server.password}").replace("acme", tenant)
        (folder / file.name).write_text(text)


def test_all_twelve_are_there() -> None:
    assert len(FOLDERS) == 12
    for name in FOLDERS:
        assert (EXAMPLES / name / "README.md").is_file()
