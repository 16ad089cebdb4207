-- Documents that the embedder can't read, because it refuses them or its process died of them: words alone find them.
alter table embedded add column refused integer not null default 0 check (refused in (0, 1));
create index embedded_refused on embedded (refused) where refused = 1;
