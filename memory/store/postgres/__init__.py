"""The engine of PostgreSQL, which needs the extra `postgres`. Without it, an import raises `StorageError`."""

from memory.errors import StorageError

try:
    import psycopg  # noqa: F401
except ImportError as exc:
    raise StorageError(
        "database_url names a PostgreSQL database, which needs the extra: pip install 'remora[postgres]'."
    ) from exc
