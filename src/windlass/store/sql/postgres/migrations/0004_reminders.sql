create table windlass_reminders (
    id bigint generated always as identity primary key,
    due_at timestamptz not null,
    mail json not null,
    job_id bigint,
    enqueued_at timestamptz,
    created_at timestamptz not null,
    constraint windlass_reminders_enqueued check ((job_id is null) = (enqueued_at is null))
);

-- Those that wait, among any number that do not.
create index windlass_reminders_due on windlass_reminders (due_at, id) where enqueued_at is null;
create index windlass_reminders_enqueued on windlass_reminders (enqueued_at, id) where enqueued_at is not null;
