-- Expands: when the visit before this one ended, by the session on the web page.
alter table web_sessions add column before_at integer;
