-- The order of reminders in words that other engines have, too.
drop index reminders_due;
create index reminders_due on reminders (case when due_at is null or snoozed_to < due_at then snoozed_to else due_at end)
    where due_at is not null or snoozed_to is not null;
