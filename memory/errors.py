"""Errors of memory. `str(error)` is written for the operator: it says what happened and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final


class MemoryFault(Exception):
    """Base class of all errors of memory."""

    code = "memory"


class StorageError(MemoryFault):
    """The database can't do the requested work."""

    code = "storage"


class StoreInUse(StorageError):
    """Another process writes this store."""

    code = "store_in_use"


class TakenForDead(StorageError):
    """The other processes on this store took this one for dead: they go on with its sessions."""

    code = "taken_for_dead"


class StoreUnwritable(StorageError):
    """The file or its folder can't be written: rights, disk full, read-only medium."""

    code = "store_unwritable"


class StoreBehind(StorageError):
    """The store is older than its list of erased rows: it may hold again what people had erased."""

    code = "store_behind"


class StoreDamaged(StorageError):
    """Pages that hold people's messages are damaged: nothing more is written, and readable pages are still read."""

    code = "store_damaged"


class IndexDamaged(StorageError):
    """An index is damaged. It is rebuilt from the rows, which are intact."""

    code = "index_damaged"


class StoreBusy(StorageError):
    """Another program keeps the file locked, or a read took too long; the same call may work later."""

    code = "store_busy"


class ReadTooLong(StoreBusy):
    """A read took too long and was ended. Others may still work."""


class SchemaTooNew(StorageError):
    """A newer Remora wrote this store."""

    code = "schema_too_new"


class NotFound(MemoryFault):
    """The row does not exist in this scope; another owner's row looks exactly the same."""

    code = "not_found"


class Withdrawn(MemoryFault):
    """The messages of a turn were withdrawn before it began, or answered meanwhile; there is nothing to answer."""

    code = "withdrawn"


class NotYours(MemoryFault):
    """The row is visible here, but only the person who said it, or whom it is about, may change it."""

    code = "not_yours"


class NotCurrent(MemoryFault):
    """The row is an old version; the current one has another id."""

    code = "not_current"


class NotWished(MemoryFault):
    """A person concerned does not want such a thing kept, or had it forgotten since it was said."""

    code = "not_wished"


class Derived(MemoryFault):
    """The row is derived from others, which must be changed instead. `short_ids` names them."""

    code = "derived"

    def __init__(self, message: str, *, short_ids: tuple[str, ...]) -> None:
        super().__init__(message)
        self.short_ids = short_ids


class UnknownFilter(MemoryFault):
    """There is no filter called `name`."""

    code = "unknown_filter"

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class UnreadFilter(MemoryFault):
    """The value of the filter `name` is no time, no category, or a key or tag that no memory has.

    `typed` is the name as the person wrote it, perhaps in their language. `known` are keys or tags that memories have,
    those most like the value first.
    """

    code = "unread_filter"

    def __init__(self, message: str, *, name: str, value: str, typed: str = "", known: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.typed = typed or name
        self.value = value
        self.known = known


class UnfitTags(MemoryFault):
    """These words can't be tags."""

    code = "unfit_tags"

    def __init__(self, unfit: Sequence[str]) -> None:
        super().__init__(f"No tags: {', '.join(unfit)}.")
        self.unfit = tuple(unfit)


class TooManyTags(MemoryFault):
    """The memory has as many tags as one may have."""

    code = "too_many_tags"


class TooManyReminders(MemoryFault):
    """The person has as many open reminders as one person may have; one of them has to go first."""

    code = "too_many_reminders"


#: Errors of the store that may be the fault of a single row. Any other subclass of `StorageError` meets everybody.
_OF_SOME: Final = (IndexDamaged, ReadTooLong)


def meets_everybody(error: Exception) -> bool:
    """Returns whether the whole store fails (a full disk, a lock, damage), and not only what was asked of it."""
    whole = isinstance(error, StorageError) and type(error) is not StorageError
    return whole and not isinstance(error, _OF_SOME)
