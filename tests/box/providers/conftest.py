"""The servers that providers talk to."""

from tests.box.database_servers import postgres_server

__all__ = ["postgres_server"]
