-- Since when somebody bears the name they have now: before a while has passed it binds nobody. What is known of it
-- comes from what they said under it; who has said nothing since then is taken to have borne it from the start.
alter table identities add column named_at integer not null default 0;
update identities set named_at = coalesce(
    (select min(m.recorded_at) from messages m where m.author_id = identities.id and m.author_name = identities.name
        and m.id > coalesce((select max(o.id) from messages o where o.author_id = identities.id
            and o.author_name not in ('', identities.name)), 0)),
    first_seen_at);

-- How many wrong codes were given, by whomever, while this one was open.
alter table pairings add column tries integer not null default 0;
alter table link_codes add column tries integer not null default 0;

-- An erasing and the hashes it left bore times some milliseconds apart, so the list beside the database went without
-- the hashes. They get the time of the erasing, and it is listed once more.
update erasures set listed_at = null where what <> '{}' and exists (
    select 1 from forgotten f where f.created_at between erasures.erased_at - 5000 and erasures.erased_at - 1
        and not exists (select 1 from erasures e where e.erased_at between f.created_at and erasures.erased_at - 1));
update forgotten set created_at = coalesce(
    (select min(e.erased_at) from erasures e where e.what <> '{}'
        and e.erased_at between forgotten.created_at and forgotten.created_at + 5000),
    created_at);

-- Under which key beside the store a hash is sealed; '' as long as it is not, which the next start sees to.
alter table forgotten add column key_id text not null default '';
