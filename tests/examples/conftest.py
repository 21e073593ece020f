"""The PostgreSQL server of the operator for PostgreSQL."""

from tests.database_servers import postgres_server

__all__ = ["postgres_server"]
