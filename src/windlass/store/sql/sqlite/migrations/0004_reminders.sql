create table windlass_reminders (
    id integer primary key autoincrement,
    due_at integer not null,
    mail text not null,
    job_id integer,
    enqueued_at integer,
    created_at integer not null,
    constraint windlass_reminders_enqueued check ((job_id is null) = (enqueued_at is null))
) strict;

-- Those that wait, among any number that do not.
create index windlass_reminders_due on windlass_reminders (due_at, id) where enqueued_at is null;
create index windlass_reminders_enqueued on windlass_reminders (enqueued_at, id) where enqueued_at is not null;
