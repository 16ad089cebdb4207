"""What can go wrong in memory. `str(error)` is written for the operator: what happened and what to do."""

from __future__ import annotations


class MemoryFault(Exception):
    """Base of the tree."""

    code = "memory"


class StorageError(MemoryFault):
    """The database file can't do what was asked."""

    code = "storage"


class StoreInUse(StorageError):
    """Another process writes this store."""

    code = "store_in_use"


class StoreUnwritable(StorageError):
    """The file or its folder can't be written: rights, disk full, read-only medium."""

    code = "store_unwritable"


class SchemaTooNew(StorageError):
    """A newer Remora wrote this store."""

    code = "schema_too_new"


class NotFound(MemoryFault):
    """No such row in this scope; another owner's row looks exactly the same."""

    code = "not_found"
