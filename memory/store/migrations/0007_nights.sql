-- What the work of the night notes about itself, and what people say of it.

-- When a memory was last gone through for names.
alter table memories add column enriched_at integer;
create index memories_unenriched on memories (owner_id, id) where enriched_at is null;

-- May the bot learn a manner of talking to this person, or to this group?
alter table people add column manner integer not null default 1;
alter table chats add column manner integer not null default 1;

-- How often a run was tried, and when it is tried next.
alter table job_runs add column attempts integer not null default 0;
alter table job_runs add column not_before integer not null default 0;
-- What becomes of an owner's rows: JSON of figures, and of ids and figures.
alter table job_items add column counts text not null default '{}';
create index job_items_owner on job_items (owner_id, run_id);
create index memories_uncompressed on memories (owner_id, local_date) where kind = 'event' and compressed_at is null;
