-- Expands: when writing was last refused in the place of a session, or tried again; null where it is allowed.
alter table sessions add column muted_at integer;
