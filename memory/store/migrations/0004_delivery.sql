-- What delivery to a platform needs beside the words: how they are formatted, what can be pressed under them, and which
-- shown message a row turns into.

alter table outbox add column markup text not null default '';   -- formatting, in its channel's own JSON
alter table outbox add column buttons text not null default '';  -- JSON list of [label, data]
alter table outbox add column edits text;                        -- the platform's id of the message to turn into this one
alter table outbox add column offered integer not null default 0;  -- the person was asked whether to show it again

-- A message that came too late to be answered unasked waits, unanswered, until somebody presses "answer now".
alter table inbox add column held integer not null default 0;

-- Who may speak beside those whom config.yaml names. Channels are named by their configured id.
create table access (
    channel    text not null,
    subject    text not null check (subject in ('person', 'group')),
    reference  text not null,                     -- the platform's user id or chat id
    state      text not null check (state in ('allowed', 'blocked')),
    granted_by text not null,                     -- the admin's user id, or 'code'
    created_at integer not null,
    primary key (channel, subject, reference)
) strict, without rowid;

-- Codes that let one person in; the code itself is not kept.
create table pairings (
    id         integer primary key,
    channel    text not null,
    salt       blob not null,
    hash       blob not null,
    created_at integer not null,
    expires_at integer not null
) strict;
create table pairing_tries (
    channel    text not null,
    user_id    text not null,
    count      integer not null,
    expires_at integer not null,
    primary key (channel, user_id)
) strict, without rowid;
