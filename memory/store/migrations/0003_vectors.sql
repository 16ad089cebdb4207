-- Likeness of meaning: all of it derived from memories and messages, and made anew whenever it is missing.
-- A document is numbered as in memory/store/documents.py; a partition is an owner's id or, for what a person said of
-- themselves in a group, their identity's id negated.

-- One row a document that has vectors. The number is never reused: what was read up to one number is known to lack only
-- what came later.
create table embedded (
    number integer primary key autoincrement,
    doc    integer not null unique,
    hash   blob not null                          -- of its partitions and text: what is unchanged is not made again
) strict;

-- Clustered by partition, so that a search reads its own pages only. At 16 bits a value a row of 384 dimensions is small
-- enough to lie within its page.
create table vectors (
    partition integer not null,
    number    integer not null,                   -- of embedded; no foreign key: it is removed first, with its rows
    chunk     integer not null,
    doc       integer not null,
    vector    blob not null,                      -- float32 scale, then int16 shares of it; little-endian, unit length
    primary key (partition, number, chunk)
) strict, without rowid;
create index vectors_doc on vectors (doc);

-- One bit a dimension for each token of a document.
create table token_bits (
    doc             integer primary key,
    partition       integer not null,
    other_partition integer,
    bits            blob not null
) strict;

-- Documents whose text has changed since they were embedded, if they ever were.
create table unembedded (
    doc integer primary key
) strict;

-- What an embedder behind a network gave, so that it is not paid for twice.
create table embedding_cache (
    hash    blob not null,                        -- of the model's name and the text
    doc     integer not null,                     -- for which it was made, and with which it is erased
    vector  blob not null,
    made_at integer not null,
    primary key (hash)
) strict, without rowid;
create index embedding_cache_doc on embedding_cache (doc);
create index embedding_cache_made on embedding_cache (made_at);
