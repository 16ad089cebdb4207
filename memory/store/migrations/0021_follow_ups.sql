-- Hours of the day between which a person wants to be asked how their plans went, such as "10-20"; '' for never.
alter table people add column follow_ups text not null default '';
-- The person's date when they were asked last; '' for never. At most one question a day.
alter table people add column followed_up_on text not null default '';
