-- What people may know and say of their own memory: who is linked with whom, who looked, what was erased or imported.

-- May anything be learned about them from what others say?
alter table people add column about integer not null default 1;
create index people_silent on people (id) where about = 0;

-- Whose private chat it is: on some platforms that has another number than the person.
alter table chats add column identity_id integer references identities;
update chats set identity_id = coalesce(
    (select m.author_id from sessions s join messages m on m.session_id = s.id
        where s.chat_id = chats.id and m.author_id is not null order by m.id desc limit 1),
    (select q.asker_id from sessions s join questions q on q.session_id = s.id
        where s.chat_id = chats.id order by q.id desc limit 1),
    (select i.id from chat_aliases a join identities i on i.platform = a.platform and i.user_id = a.reference
        where a.chat_id = chats.id limit 1)
) where kind = 'private';
create index chats_identity on chats (identity_id) where identity_id is not null;

-- Codes by which two identities become one person; the code itself is not kept.
create table link_codes (
    id          integer primary key,
    identity_id integer not null references identities,  -- who asked for it
    session_id  integer not null references sessions,    -- where they are asked whether it is right
    salt        blob not null,
    hash        blob not null,
    created_at  integer not null,
    expires_at  integer not null
) strict;
create table link_tries (
    identity_id integer primary key references identities,
    count       integer not null,
    expires_at  integer not null
) strict;

-- Each look of an admin into somebody's memory.
create table looks (
    id        integer primary key,
    owner_id  integer not null references owners,
    admin_id  integer not null references identities,
    agent_id  integer not null references agents,
    action    text not null,                      -- list, search, show, forget
    found     integer not null,                   -- how many memories were shown or removed
    looked_at integer not null
) strict;
create index looks_owner on looks (owner_id, looked_at);

-- What was erased on request: ids and figures, never text.
create table erasures (
    id          integer primary key autoincrement,
    inbox_id    integer unique references inbox,  -- the message that asked for it
    what        text not null,                    -- JSON of ids
    counts      text not null,                    -- JSON of figures: the receipt
    erased_at   integer not null,
    ended_at    integer,                          -- since when the turns then under way are over, and gone through
    scrubbed_at integer,                          -- since when no byte of it is left in the files
    listed_at   integer                           -- since when it is in the list beside the database
) strict;
create index erasures_open on erasures (id) where scrubbed_at is null or listed_at is null;

-- What was brought in from elsewhere, so that it can be taken out again.
create table imports (
    id         integer primary key autoincrement,
    short_id   text not null unique,
    owner_id   integer not null references owners,
    format     text not null,
    digest     text not null default '',          -- of the files: the same command goes on; gone once it is undone
    state      text not null check (state in ('running', 'done', 'undone')),
    counts     text not null default '{}',        -- JSON of figures
    started_at integer not null,
    ended_at   integer
) strict;
alter table memories add column import_id integer references imports;
alter table messages add column import_id integer references imports;
create index memories_import on memories (import_id) where import_id is not null;
create index messages_import on messages (import_id) where import_id is not null;

-- A file that goes out with a row, such as a person's own export.
alter table outbox add column file_name text not null default '';
alter table outbox add column file blob;
create index outbox_shown on outbox (session_key, platform_ref) where turn_id is not null;

-- How reading stands in one session.
create index extractions_session on extractions (session_id, id);
