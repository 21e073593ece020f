"""The servers that providers call."""

from tests.database_servers import postgres_server

__all__ = ["postgres_server"]
