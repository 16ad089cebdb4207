-- Where the talk begins that a session's summary covers: messages above this id, up to window_after; null without one.
alter table sessions add column summary_after integer;
-- 1 where a summary has found the active task, which a later one may change; 0 where a person has set it.
alter table sessions add column task_found integer not null default 0;
