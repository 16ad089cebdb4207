"""The state of a PostgreSQL server: its settings that matter to a store, its standbys, and its users.

Invariant: everything here is read from the server's memory, so it may be asked every few seconds.
"""

from __future__ import annotations

from memory.store.database import Reader
from memory.store.postgres import lanes
from memory.store.server import Deployment, ServerState, Standby


def deployment(reader: Reader) -> Deployment:
    version = reader.one("select current_setting('server_version') as version")
    assert version is not None
    engine = f"PostgreSQL {str(version['version']).split()[0]}"
    return Deployment(engine=engine, server=server(reader), peers=tuple(lanes.peers(reader)))


def server(reader: Reader) -> ServerState:
    row = reader.one(_SERVER)
    assert row is not None
    return ServerState(
        vectors=row["vectors"],
        fsync=row["fsync"] == "on",
        synchronous_commit=row["synchronous_commit"] != "off",
        most_connections=row["most_connections"],
        standbys=tuple(
            Standby(name=one["name"], state=one["state"], lag_bytes=one["lag_bytes"], lag_seconds=one["lag_seconds"])
            for one in reader.all(_STANDBYS)
        ),
    )


# Some of the server's connections are reserved for superusers; a database and a role may have limits of their own.
_SERVER = (
    "select (select extversion from pg_extension where extname = 'vector') as vectors,"
    " current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,"
    " least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    " - current_setting('reserved_connections')::int,"
    " (select nullif(datconnlimit, -1) from pg_database where datname = current_database()),"
    " (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user)) as most_connections"
)
# Without the role pg_monitor only the names are shown.
_STANDBYS = (
    "select application_name as name, state, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint as lag_bytes,"
    " extract(epoch from replay_lag)::float as lag_seconds from pg_stat_replication order by application_name, pid"
)
