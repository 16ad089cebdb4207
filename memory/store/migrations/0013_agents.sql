-- The agent that a person chose for a session with /agent; null where routing decides.
alter table sessions add column chosen_agent_id integer references agents;
