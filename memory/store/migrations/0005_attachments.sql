-- What comes beside the words of a message, and what lets a platform answer an interaction in place.

-- The platform's own secret for answering one message, copied from its inbox row; gone once the row is shown.
alter table outbox add column ticket text not null default '';
-- Shown in the place of what the ticket is for, so that showing it once more changes nothing.
alter table outbox add column in_place integer not null default 0;

-- Pictures, files and voice as they were understood; the bytes themselves are kept of pictures alone, and of few.
create table attachments (
    id         integer primary key,
    inbox_id   integer not null references inbox,
    message_id integer references messages,       -- set when its turn begins
    position   integer not null,                  -- among those of one message, from 0
    kind       text not null,
    name       text not null,
    media_type text not null,
    size       integer,
    state      text not null check (state in ('text', 'picture', 'spoken', 'named')),
    why        text not null default '',          -- for state 'named': the code of what was in the way
    text       text not null default '',          -- what a file or a voice says, secrets masked
    data       blob,                              -- for state 'picture'
    created_at integer not null,
    unique (inbox_id, position)
) strict;
create index attachments_message on attachments (message_id);
create index attachments_pictures on attachments (message_id) where data is not null;

-- A turn's messages are looked for by it, and there are many without one.
create index messages_turn on messages (turn_id) where turn_id is not null;

-- What failed before it reached history, whose words are kept for a while.
create index inbox_kept on inbox (session_key) where state = 'failed' and payload <> '';

-- A chat may have several bots; it is left when the last of them is gone.
alter table sessions add column left_at integer;
