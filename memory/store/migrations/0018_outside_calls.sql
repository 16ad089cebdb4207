-- A turn asks whether its messages have agreed to a call of a tool that is not ours.
create index if not exists questions_purpose on questions (purpose, state);
