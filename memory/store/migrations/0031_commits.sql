-- Expands: the last transactions that each writer on a server has committed. After a lost connection they tell whether one
-- was committed: a server that recovers may give a transaction's own number again. A file leaves the table empty.
create table commits (
    writer text not null,
    number integer not null,
    primary key (writer, number)
) strict;
