"""The servers that providers talk to."""

from tests.database_servers import postgres_server

__all__ = ["postgres_server"]
