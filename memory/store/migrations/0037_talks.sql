-- Expands: conversations of the page have titles, may be pinned, and branch where a message is said in other words.
alter table sessions add column title text;
-- Null while no title was looked for; 0 for one that its person gave, 1 for one that a model found, or failed to find.
alter table sessions add column title_found integer;
alter table sessions add column pinned_at integer;
-- The session that the conversation began in; null for that session itself.
alter table sessions add column talk_id integer;
-- A branch continues another session, without that session's messages from this one on.
alter table sessions add column branch_of integer;
alter table sessions add column branch_at integer;
create index sessions_talk on sessions (talk_id) where talk_id is not null;
