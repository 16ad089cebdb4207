-- Who was answered, so that a person's share of a day can be counted; null where nobody was.
alter table usage add column identity_id integer references identities;
create index usage_identity on usage (identity_id, created_at);
create index usage_session on usage (session_id, created_at);
