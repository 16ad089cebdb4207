-- Keys by which a person's programs talk to the agents and read memory. The key itself is not kept.
create table api_keys (
    id          integer primary key autoincrement,    -- never reused: people revoke by it
    identity_id integer not null references identities,  -- the account that made it
    channel     text not null,                        -- where that account speaks, as in session keys
    hash        blob not null unique,                 -- of 256 random bits, so it needs no salt
    label       text not null,
    scopes      text not null,                        -- chat, read and write, separated by commas
    created_at  integer not null,
    used_at     integer                               -- to the minute
) strict;
create index api_keys_identity on api_keys (identity_id);
