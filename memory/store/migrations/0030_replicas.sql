-- Several processes on one store. A file has one process, and leaves these tables empty.
create table replicas (
    id      text primary key,
    beat    integer not null,    -- counts the signs of life
    answers integer not null     -- 1 if it answers sessions, 0 if it only writes
) strict;

-- Which process answers a session and shows what is said there. Without a row, whoever is first takes it.
create table lanes (
    session_key text primary key,
    holder      text not null references replicas (id) on delete cascade
) strict;
create index lanes_holder on lanes (holder);

-- Which process has a duty that only one may have at a time.
create table duties (
    name   text primary key,
    holder text not null references replicas (id) on delete cascade
) strict;
create index duties_holder on duties (holder);
