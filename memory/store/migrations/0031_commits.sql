-- Expands: the last committed transaction of each writer on a server. After a lost connection it tells whether a
-- transaction was committed: a server that recovers may give a transaction's own number again. A file leaves it empty.
create table commits (
    writer text primary key,
    number integer not null
) strict;
