-- sqlite-vec compares vectors inside the database: as 8-bit integers and, of an owner who has many, by signs first.
-- What was stored before can't be compared with these, so every document is embedded again in the background.
drop table vectors;
drop table embedded;
delete from store_settings where name = 'vectors';

-- One row a document that the embedder is done with.
create table embedded (
    doc     integer primary key,
    hash    blob not null,                        -- of its partitions and text: what is unchanged is not made again
    refused integer not null default 0 check (refused in (0, 1))  -- it can't be read, and words alone find it
) strict;
create index embedded_refused on embedded (refused) where refused = 1;

-- Clustered by partition, so that a search reads its own pages only.
create table vectors (
    partition integer not null,
    doc       integer not null,
    chunk     integer not null,
    vector    blob not null,                      -- int8, the largest value of each vector being 127 or -127
    primary key (partition, doc, chunk)
) strict, without rowid;
create index vectors_doc on vectors (doc);

-- The same from the model's centre, one bit a dimension: an eighth of the bytes to read.
create table vector_signs (
    partition integer not null,
    doc       integer not null,
    chunk     integer not null,
    signs     blob not null,
    primary key (partition, doc, chunk)
) strict, without rowid;
create index vector_signs_doc on vector_signs (doc);
