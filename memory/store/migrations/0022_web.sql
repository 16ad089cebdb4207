-- Sign-in to the web page. Codes and sessions name an account by its channel, and are stored hashed.
create table web_codes (
    hash       blob primary key,
    channel    text not null,
    platform   text not null,
    user_id    text not null,
    agent      text not null,    -- whose page the link opens
    expires_at integer not null
) strict;

create table web_sessions (
    id         integer primary key autoincrement,    -- never reused: a form may name it
    hash       blob not null unique,
    channel    text not null,
    platform   text not null,
    user_id    text not null,
    agent      text not null,    -- whose page is open
    created_at integer not null,
    seen_at    integer not null,
    expires_at integer not null
) strict;
create index web_sessions_account on web_sessions (channel, user_id);
