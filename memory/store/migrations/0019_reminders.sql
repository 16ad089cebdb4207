-- Reminders of people and tasks for agents: words that are due at a time.
create table reminders (
    id          integer primary key autoincrement,    -- never reused: buttons and outbox rows hold bare ids
    number      integer not null,                     -- what its person calls it; free again once it is gone
    kind        text not null check (kind in ('reminder', 'task')),
    identity_id integer not null references identities,
    agent_id    integer not null references agents,
    session_id  integer not null references sessions, -- where it was asked for
    private     integer not null default 0,           -- shown in private, wherever it was asked for
    text        text not null,
    language    text not null,
    zone        text not null,                        -- the timezone of the times below
    first       text not null,                        -- local wall clock of the first time, '' while it is asked for
    rule        text not null default '',             -- how it repeats; '' for once
    until       text not null default '',             -- the last local day
    asked_ref   text,                                 -- the platform's id of the message that asked
    due_at      integer,                              -- the next time by the rule
    snoozed_to  integer,                              -- another time at which it is shown once more
    shown_at    integer,                              -- when it was shown last
    failures    integer not null default 0,           -- a task's failures in a row
    created_at  integer not null
) strict;
create index reminders_due on reminders (min(ifnull(due_at, snoozed_to), ifnull(snoozed_to, due_at)))
    where due_at is not null or snoozed_to is not null;
create index reminders_identity on reminders (identity_id);

-- The reminder that a shown message is about; a bare id, as the reminder goes when it is done.
alter table outbox add column reminder_id integer;
create index outbox_reminder on outbox (session_key, platform_ref) where reminder_id is not null;
