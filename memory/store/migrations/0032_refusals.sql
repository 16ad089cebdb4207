-- Expands: memories that a model would not read at night, by job. One that was refused too often holds up no others: it is
-- set aside until the next start, whose model may be another.
create table refusals (
    job       text not null,
    memory_id integer not null references memories on delete cascade,
    tries     integer not null,
    primary key (job, memory_id)
) strict, without rowid;
create index refusals_memory on refusals (memory_id);

-- Pieces of talk that are set aside are counted at each look at the health.
create index extractions_parked on extractions (id) where state = 'parked';
