-- The model that a person chose for a session with /model, as the agent's file names it; null: the file's order.
alter table sessions add column chosen_model text;
