"""The server that the provider example talks to."""

from tests.database_servers import postgres_server

__all__ = ["postgres_server"]
