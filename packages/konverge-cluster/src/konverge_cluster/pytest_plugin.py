"""The pytest plug-in: fixtures for tests on the embedded cluster and on the real control plane.

Use it with ``pytest_plugins = ["konverge_cluster.pytest_plugin"]`` in a ``conftest.py``.
"""

pytest_plugins: list[str] = ["konverge_cluster._internal.testing.pytest_plugin"]
