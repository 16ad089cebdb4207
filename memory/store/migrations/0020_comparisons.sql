-- Pairs of facts that were compared, each once. A doubt waits here until its person has been asked.
create table comparisons (
    older_id    integer not null references memories on delete cascade,
    newer_id    integer not null references memories on delete cascade,
    verdict     text not null check (verdict in ('agree', 'replaces', 'doubt')),
    why         text not null default '' check (why in ('', 'changed', 'ended', 'corrected', 'exact')),
    compared_at integer not null,
    asked_at    integer,                              -- of a doubt; null while it waits
    answer      text check (answer in ('older', 'newer', 'both')),
    primary key (older_id, newer_id)
) strict, without rowid;
create index comparisons_newer on comparisons (newer_id);

-- When a fact's pairs were all compared; null while it waits.
alter table memories add column compared_at integer;
create index memories_uncompared on memories (owner_id, id) where compared_at is null and kind = 'fact';
