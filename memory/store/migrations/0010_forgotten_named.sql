-- What was forgotten, messages and statements, by sealed hashes of what its platform calls whose it was. No owner: a
-- backup from before anybody spoke knows nobody yet, and an export of what was said must stay out of it all the same.
create table forgotten_named (
    hash       blob primary key,
    key_id     text not null,
    created_at integer not null
) strict, without rowid;
