"""The PostgreSQL server of the provider example."""

from tests.database_servers import postgres_server

__all__ = ["postgres_server"]
