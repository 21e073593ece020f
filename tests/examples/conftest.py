"""The fixtures of the operator for PostgreSQL. Only here: each import of a fixture is another one for pytest."""

from tests.database_servers import postgres_server
from tests.examples.postgres_surroundings import database, example, operator, storage_class

__all__ = ["database", "example", "operator", "postgres_server", "storage_class"]
