-- Who finds names in what an agent learns: 'auto', 'spacy', 'model', 'patterns' or 'none', as its file says.
alter table agents add column entities text not null default 'auto';
