-- The word index in plain tables, which every engine has. It is filled again from the rows in the background.
drop table if exists words;
delete from store_settings where name = 'words';

-- One row a document that is indexed, with what it is found by.
create table if not exists indexed_documents (
    doc             integer primary key,
    partition       integer not null,             -- as in memory/scope.py
    other_partition integer,
    postings        integer not null,             -- the number of its rows below
    tokens          text not null                 -- in reading order, each between blanks
) strict;

-- Clustered by partition and term, so that a search reads its own pages only.
create table if not exists postings (
    partition integer not null,
    term      text not null,
    doc       integer not null,
    primary key (partition, term, doc)
) strict, without rowid;
