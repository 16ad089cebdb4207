-- Expands: a message that may mean what a memory says, but does not say it plainly, is no telling of it.
alter table memory_sources add column unsure integer not null default 0;
