"""A PostgreSQL server of the tests' own: one for each process that asks, with a database for each store."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from memory.store.postgres import schema

#: Nothing here has to survive a crash of the machine.
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB", "max_connections": "60",
             "autovacuum": "off", "listen_addresses": "''"}  # fmt: skip
_TEMPLATE = "remora_template"
#: The stores that have a database.
_made: set[Path] = set()
#: The role of the stores: an ordinary one, since PostgreSQL knows no policies for a superuser.
ROLE = "remora"
#: What tests ask for the tables and columns, under SQLite's names.
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


@cache
def server() -> str:
    """Starts the server if it does not run yet, and returns its address without a database."""
    wheel = find_spec("pgserver")
    assert wheel is not None and wheel.origin is not None
    binaries = Path(wheel.origin).parent / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="remora-pg-"))
    user = "nobody" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"

    def run(*command: str | Path) -> None:
        subprocess.run(
            command,
            user=user,
            check=True,
            capture_output=True,
            cwd=folder,
            env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
        )

    run(binaries / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C")
    options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    run(binaries / "pg_ctl", "-D", data, "-w", "-o", f"{options} -k {folder}", "-l", folder / "log", "start")

    def end() -> None:
        stop: list[str | Path] = [binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"]
        subprocess.run(stop, user=user, check=False, capture_output=True, cwd=folder)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    run(binaries / "psql", "-h", folder, "-U", "postgres", "-d", "postgres", "-c", f"create role {ROLE} login createdb")
    return f"host={folder} user={ROLE}"


def superuser(address: str) -> str:
    """Returns an address of the server for its superuser, whom no policy holds."""
    return address.replace(f"user={ROLE}", "user=postgres")


@cache
def _template() -> str:
    import psycopg

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


def is_installed() -> bool:
    """Returns whether the driver and the server are installed."""
    return find_spec("pgserver") is not None and find_spec("psycopg") is not None
