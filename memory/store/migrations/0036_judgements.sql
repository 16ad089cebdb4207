-- Expands: what people think of answers, as they show by reactions. Ids only; an account judges an answer once.
create table judgements (
    turn_id     integer not null references turns,
    identity_id integer not null references identities,
    good        integer not null check (good in (0, 1)),
    judged_at   integer not null,
    primary key (turn_id, identity_id)
) strict, without rowid;
create index judgements_identity on judgements (identity_id);
