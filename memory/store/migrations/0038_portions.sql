-- Expands: what the request of an answer was made of, in tokens: JSON of figures by part, and the size of what was
-- remembered in it. Null where no model was asked.
alter table turns add column portions text;
alter table recalls add column tokens integer;
