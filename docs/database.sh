#!/bin/sh
# Run once by the container of PostgreSQL, when it makes its database (compose.postgres.yaml). Remora's role is an
# ordinary one, since policies of row-level security do not hold a superuser.
set -e
psql -v ON_ERROR_STOP=1 -v password="$REMORA_DB_PASSWORD" --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
create role remora login password :'password';
grant pg_monitor to remora;
create database remora owner remora;
\connect remora
create extension vector;
SQL
