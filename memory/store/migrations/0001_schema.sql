-- Times are milliseconds since 1970 UTC; dates are the person's local 'YYYY-MM-DD'; flags are 0 or 1.
-- Which of these columns hold people's words is declared in memory/store/erasure.py.

create table store_settings (
    name  text primary key,
    value text not null
) strict;

-- People and places ---------------------------------------------------------------------------------------------

create table agents (
    id         integer primary key,
    name       text not null unique,
    created_at integer not null
) strict;

create table people (
    id         integer primary key,
    language   text,              -- set by command: a setting, not a memory
    timezone   text,
    learning   integer not null default 1,
    created_at integer not null
) strict;

create table identities (
    id            integer primary key,
    person_id     integer not null references people,
    platform      text not null,
    user_id       text not null,
    name          text not null default '',
    first_seen_at integer not null,
    last_seen_at  integer not null,
    unique (platform, user_id)
) strict;
create index identities_person on identities (person_id);

create table chats (
    id          integer primary key,
    platform    text not null,
    kind        text not null check (kind in ('private', 'group')),
    title       text not null default '',
    threads_own integer not null default 0,
    learning    integer not null default 1,
    created_at  integer not null,
    left_at     integer
) strict;

create table chat_aliases (
    platform   text not null,
    reference  text not null,     -- the platform's own chat id; a group that becomes a supergroup has two
    chat_id    integer not null references chats,
    created_at integer not null,
    primary key (platform, reference)
) strict, without rowid;

-- Whose row a memory is. The id of this table is the only thing a scope filters by.
create table owners (
    id          integer primary key,
    kind        text not null check (kind in ('identity', 'chat', 'thread', 'agent')),
    identity_id integer references identities,
    chat_id     integer references chats,
    thread      text,
    agent_id    integer references agents,
    check (
        (kind = 'identity' and identity_id is not null and chat_id is null and thread is null and agent_id is null)
        or (kind = 'chat' and chat_id is not null and identity_id is null and thread is null and agent_id is null)
        or (kind = 'thread' and chat_id is not null and thread is not null and identity_id is null and agent_id is null)
        or (kind = 'agent' and agent_id is not null and identity_id is null and chat_id is null and thread is null)
    )
) strict;
create unique index owners_identity on owners (identity_id) where kind = 'identity';
create unique index owners_chat on owners (chat_id) where kind = 'chat';
create unique index owners_thread on owners (chat_id, thread) where kind = 'thread';
create unique index owners_agent on owners (agent_id) where kind = 'agent';

-- History -------------------------------------------------------------------------------------------------------

create table sessions (
    id              integer primary key,
    key             text not null unique,
    chat_id         integer not null references chats,
    thread          text,
    agent_id        integer not null references agents,
    window_after    integer not null default 0,   -- messages up to this id are outside the window
    extracted_to    integer not null default 0,   -- messages up to this id are in an extraction or need none
    sitting         integer not null default 1,
    summary         text,
    active_task     text,
    snapshot        text,                         -- JSON list of memory ids in the prompt; never their text
    snapshot_at     integer,
    created_at      integer not null,
    last_message_at integer
) strict;

create table turns (
    id          integer primary key,
    session_id  integer not null references sessions,
    agent_id    integer not null references agents,
    state       text not null check (state in ('running', 'done', 'failed')),
    attempts    integer not null default 1,
    error       text,                             -- an error code, never message text
    started_at  integer not null,
    finished_at integer
) strict;
create index turns_session on turns (session_id, id);

create table messages (
    id           integer primary key,
    session_id   integer not null references sessions,
    turn_id      integer references turns,
    role         text not null check (role in ('user', 'assistant', 'tool', 'system')),
    author_id    integer references identities,
    author_name  text not null default '',
    platform_ref text,                            -- the platform's message id
    reply_to     text,
    text         text not null,
    tool_calls   text,                            -- JSON, for role assistant
    tool_call_id text,                            -- for role tool
    tokens       integer not null,
    learn        integer not null,                -- fixed when recorded: may anything be learned from this?
    recall       integer not null default 1,      -- may it be found again?
    sitting      integer not null,
    said_at      integer not null,                -- the platform's time
    recorded_at  integer not null,
    edited_at    integer,
    erased_at    integer
) strict;
create index messages_session on messages (session_id, id);
create index messages_platform on messages (session_id, platform_ref);
create index messages_author on messages (author_id, id);

create table steps (
    turn_id    integer not null references turns,
    n          integer not null,
    completion text not null,                     -- JSON of the model's whole answer
    created_at integer not null,
    primary key (turn_id, n)
) strict, without rowid;

create table effects (
    turn_id    integer not null references turns,
    n          integer not null,
    i          integer not null,
    tool       text not null,
    state      text not null check (state in ('started', 'done')),
    result     text,
    created_at integer not null,
    primary key (turn_id, n, i)
) strict, without rowid;

-- Mailbox -------------------------------------------------------------------------------------------------------

create table inbox (
    id          integer primary key,
    platform    text not null,
    bot_id      text not null,
    update_key  text not null,
    session_key text not null,
    payload     text not null,                    -- JSON of the inbound message, secrets masked
    state       text not null check (state in ('pending', 'claimed', 'done', 'failed', 'dead')),
    turn_id     integer references turns,
    attempts    integer not null default 0,
    error       text,
    received_at integer not null,
    finished_at integer,
    unique (platform, bot_id, update_key)
) strict;
create index inbox_open on inbox (id) where state in ('pending', 'claimed');
create index inbox_turn on inbox (turn_id);

create table outbox (
    id           integer primary key,
    session_key  text not null,
    turn_id      integer references turns,
    inbox_id     integer references inbox,
    kind         text not null check (kind in ('message', 'placeholder', 'notice')),
    chunk        integer not null,
    text         text not null,
    reply_to     text,
    state        text not null check (state in ('pending', 'sending', 'sent', 'unknown', 'dead')),
    run          text not null,                   -- the process run that wrote it
    attempts     integer not null default 0,
    not_before   integer not null default 0,
    platform_ref text,
    error        text,
    created_at   integer not null,
    sent_at      integer
) strict;
create index outbox_open on outbox (session_key, id) where state in ('pending', 'sending', 'unknown');
create index outbox_turn on outbox (turn_id);

-- A question to the human: what is asked of whom, and what each answer does.
create table questions (
    id          integer primary key,
    session_id  integer not null references sessions,
    asker_id    integer not null references identities,
    purpose     text not null,
    payload     text not null,                    -- JSON of ids, never of text
    choices     text not null,                    -- JSON list of choice names
    preset      text not null,                    -- what "yes" means
    state       text not null check (state in ('open', 'answered', 'cancelled', 'expired')),
    answer      text,
    created_at  integer not null,
    expires_at  integer not null
) strict;
create index questions_open on questions (session_id, asker_id) where state = 'open';

-- What a channel must remember across restarts, such as a polling offset.
create table channel_state (
    channel text not null,
    name    text not null,
    value   text not null,
    primary key (channel, name)
) strict, without rowid;

-- Memory --------------------------------------------------------------------------------------------------------

create table memories (
    id                 integer primary key autoincrement,  -- never reused: recalls keep bare ids
    short_id           text not null unique,
    kind               text not null check (kind in ('profile', 'directive', 'fact', 'style', 'reflection', 'event')),
    owner_id           integer not null references owners,
    author_id          integer references identities,   -- who said it
    subject_id         integer references identities,   -- whom it is about, when that is somebody known
    subject            text not null default '',        -- whom or what it is about, in words
    agent_id           integer references agents,       -- set where a row stays with one agent
    category           text not null,
    topic              text not null default '',
    key                text not null,
    value              text not null,
    tags               text not null default '[]',      -- JSON list
    flags              text not null default '[]',      -- JSON list of what the guard noticed
    importance         integer not null check (importance between 1 and 10),
    confidence         real not null check (confidence between 0 and 1),
    strength           real not null default 1.0,       -- base strength; the decayed one is computed at read
    origin             text not null check (origin in ('extracted', 'told', 'admin', 'imported', 'derived')),
    created_at         integer not null,
    learned_at         integer not null,                -- time of the message it was learned from
    local_date         text not null,                   -- the person's date then
    valid_from         integer not null,
    valid_until        integer,
    superseded_by      integer references memories on delete set null,
    access_count       integer not null default 0,
    last_access_at     integer,
    reinforced_count   integer not null default 0,
    last_reinforced_at integer not null,
    pinned             integer not null default 0,
    confirmed          integer not null default 0,
    compressed_at      integer,                         -- events: when they became facts
    archived_at        integer
) strict;
create index memories_owner on memories (owner_id, kind, key);
create index memories_author on memories (author_id, owner_id);
create index memories_superseded on memories (superseded_by) where superseded_by is not null;

create table memory_sources (
    memory_id  integer not null references memories on delete cascade,
    message_id integer not null references messages,
    primary key (memory_id, message_id)
) strict, without rowid;
create index memory_sources_message on memory_sources (message_id);

create table memory_parents (
    memory_id integer not null references memories on delete cascade,
    parent_id integer not null references memories on delete cascade,
    primary key (memory_id, parent_id)
) strict, without rowid;
create index memory_parents_parent on memory_parents (parent_id);

create table entities (
    id            integer primary key,
    owner_id      integer not null references owners,
    type          text not null check (type in ('person', 'organization', 'project', 'location', 'email', 'url', 'other')),
    name          text not null,
    norm          text not null,
    mention_count integer not null default 0,
    enriched_at   integer,
    created_at    integer not null,
    unique (owner_id, type, norm)
) strict;

create table entity_aliases (
    entity_id integer not null references entities on delete cascade,
    alias     text not null,
    primary key (entity_id, alias)
) strict, without rowid;

create table memory_entities (
    memory_id integer not null references memories on delete cascade,
    entity_id integer not null references entities on delete cascade,
    primary key (memory_id, entity_id)
) strict, without rowid;
create index memory_entities_entity on memory_entities (entity_id);

-- What entered a reply: ids and scores, never text. No foreign key: a forgotten memory leaves its bare id here.
create table recalls (
    turn_id    integer not null references turns,
    rank       integer not null,
    item       text not null check (item in ('memory', 'message')),
    item_id    integer not null,
    placed     text not null check (placed in ('known', 'recalled', 'unused')),
    score      real,
    parts      text not null,                     -- JSON of score parts, numbers only
    primary key (turn_id, rank)
) strict, without rowid;
create index recalls_item on recalls (item, item_id);

create table extractions (
    id         integer primary key,
    session_id integer not null references sessions,
    first_id   integer not null references messages,
    last_id    integer not null references messages,
    reason     text not null,
    state      text not null check (state in ('pending', 'done', 'parked')),
    attempts   integer not null default 0,
    not_before integer not null default 0,
    error      text,
    found      integer,
    created_at integer not null,
    done_at    integer
) strict;
create index extractions_open on extractions (session_id, id) where state = 'pending';

-- A second net against learning again what was forgotten: keyed hashes only.
create table forgotten (
    owner_id   integer not null references owners,
    hash       blob not null,
    created_at integer not null,
    primary key (owner_id, hash)
) strict, without rowid;

-- Feeds the derived indexes, outside the transaction that wrote the row.
create table changes (
    id        integer primary key autoincrement,
    memory_id integer not null
) strict;

-- Work and cost -------------------------------------------------------------------------------------------------

create table usage (
    id            integer primary key,
    turn_id       integer references turns,
    session_id    integer references sessions,
    agent_id      integer not null references agents,
    purpose       text not null,
    model         text not null,
    input_tokens  integer not null,
    output_tokens integer not null,
    cached_tokens integer not null,
    estimated     integer not null,
    cost          real,                           -- in the currency of the configured prices
    created_at    integer not null
) strict;
create index usage_agent on usage (agent_id, created_at);
create index usage_turn on usage (turn_id);

create table job_runs (
    id          integer primary key,
    job         text not null,
    agent_id    integer not null references agents,
    period      text not null,
    state       text not null check (state in ('running', 'done', 'failed', 'skipped', 'undone')),
    lease_until integer,
    started_at  integer not null,
    finished_at integer,
    result      text not null default '{}',       -- JSON of counts
    error       text,
    unique (job, agent_id, period)
) strict;

create table job_items (
    run_id      integer not null references job_runs on delete cascade,
    owner_id    integer not null references owners,
    state       text not null check (state in ('pending', 'done', 'failed', 'undone')),
    undo        text,                             -- JSON: what brings the owner's rows back
    finished_at integer,
    primary key (run_id, owner_id)
) strict, without rowid;
