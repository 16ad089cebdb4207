-- Messages are found again, too: whose they are, and where each stands among its neighbours.
alter table messages add column owner_id integer references owners;
alter table messages add column nth integer;      -- 1, 2, 3 … among the session's messages that people see

update messages set owner_id = coalesce(
    (select o.id from sessions s join chats c on c.id = s.chat_id
       join owners o on o.kind = 'thread' and o.chat_id = s.chat_id and o.thread = s.thread
      where s.id = messages.session_id and c.kind = 'group' and c.threads_own),
    (select o.id from sessions s join chats c on c.id = s.chat_id
       join owners o on o.kind = 'chat' and o.chat_id = s.chat_id
      where s.id = messages.session_id and c.kind = 'group'),
    (select o.id from messages said join owners o on o.identity_id = said.author_id
      where said.session_id = messages.session_id order by said.id limit 1)
);
update messages set nth = numbered.nth from (
    select id, row_number() over (partition by session_id order by id) as nth
      from messages where role in ('user', 'assistant') and text <> ''
) as numbered where numbered.id = messages.id;

create index messages_neighbours on messages (session_id, nth);
create index messages_owner on messages (owner_id, said_at)
    where nth is not null and recall = 1 and erased_at is null;

-- The words of memories were numbered by their own ids: the index is made anew.
delete from store_settings where name = 'words';

-- One log feeds the indexes of both (numbers as in memory/store/documents.py).
drop table changes;
create table changes (
    id  integer primary key autoincrement,
    doc integer not null
) strict;
insert into changes (doc) select 2 * id from memories order by id;
insert into changes (doc) select 2 * id + 1 from messages where nth is not null order by id;
