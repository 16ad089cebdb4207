-- Functions under the names that the store's statements use. A vector lies in memory as halfvec; it comes and goes as
-- 8-bit integers, and signs as bits.
create extension if not exists vector with schema public;

create or replace function vec_int8(bytea) returns halfvec language sql immutable strict parallel safe as $$
  select array_agg(case when get_byte($1, n) > 127 then get_byte($1, n) - 256 else get_byte($1, n) end order by n)::halfvec
  from generate_series(0, length($1) - 1) n
$$;
create or replace function vec_int8(halfvec) returns halfvec language sql immutable strict parallel safe as 'select $1';
create or replace function vec_distance_cosine(halfvec, halfvec) returns double precision
  language sql immutable strict parallel safe as
  $$ select nullif($1 <=> $2, 'NaN') $$;
create or replace function vec_bit(bytea) returns bit varying language sql immutable strict parallel safe as
  $$ select ('x' || encode($1, 'hex'))::bit varying $$;
create or replace function vec_distance_hamming(bit varying, bit varying) returns double precision
  language sql immutable strict parallel safe as 'select $1::bit varying <~> $2::bit varying';
create or replace function length(halfvec) returns integer language sql immutable strict parallel safe as
  'select vector_dims($1)';

-- The values of an array, or of a list written as JSON, and where each stands. None of them is strict: such a function
-- is planned for a thousand rows, while the body of one that is not is planned as a part of the statement.
create or replace function each_of(bigint[]) returns table (key bigint, value bigint)
  language sql immutable as 'select n - 1, v from unnest($1) with ordinality as u (v, n)';
create or replace function each_of(text[]) returns table (key bigint, value text)
  language sql immutable as 'select n - 1, v from unnest($1) with ordinality as u (v, n)';
create or replace function each_of(text) returns table (key bigint, value jsonb)
  language sql immutable as 'select n - 1, v from jsonb_array_elements($1::jsonb) with ordinality as u (v, n)';
create or replace function each_of(text, text) returns table (key bigint, value text) language sql immutable as
  'select n - 1, v from jsonb_array_elements_text(jsonb_path_query_first($1::jsonb, $2::jsonpath)) with ordinality as u (v, n)';
create or replace function each_of(jsonb, text) returns table (key bigint, value text) language sql immutable as
  'select n - 1, v from jsonb_array_elements_text(jsonb_path_query_first($1, $2::jsonpath)) with ordinality as u (v, n)';

create or replace function json_extract(text, text) returns text language sql immutable strict as
  $$ select jsonb_path_query_first($1::jsonb, $2::jsonpath) #>> '{}' $$;
create or replace function json_extract(jsonb, text) returns text language sql immutable strict as
  $$ select jsonb_path_query_first($1, $2::jsonpath) #>> '{}' $$;
create or replace function json_set(text, text, text) returns text language sql immutable as
  $$ select jsonb_set($1::jsonb, string_to_array(substr($2, 3), '.'), coalesce(to_jsonb($3), 'null'))::text $$;
create or replace function json_set(text, text, bigint) returns text language sql immutable as
  $$ select jsonb_set($1::jsonb, string_to_array(substr($2, 3), '.'), coalesce(to_jsonb($3), 'null'))::text $$;
create or replace function json_valid(text) returns boolean language sql immutable strict as 'select $1 is json';
create or replace function json_append(jsonb, anyelement) returns jsonb language sql immutable as
  'select $1 || jsonb_build_array($2)';
create or replace aggregate json_group_array(anyelement) (sfunc = json_append, stype = jsonb, initcond = '[]');

-- Ends a transaction in an error unless a process is still among the others. It waits for whoever is removing the process,
-- and keeps others from removing it until the commit.
create or replace function still_here(replica text) returns void language plpgsql as $$ begin
  perform 1 from replicas where id = replica for key share;
  if not found then raise exception 'the process % was removed', replica using errcode = 'RM001'; end if;
end $$;

-- Notes the nth transaction of a writer, as part of it. Nobody asks for one that was committed long before.
create or replace function note_commit(of_writer text, nth bigint) returns void language plpgsql as $$ begin
  insert into commits values (of_writer, nth);
  if nth % 1000 = 0 then delete from commits where writer = of_writer and number < nth - 10000; end if;
end $$;
