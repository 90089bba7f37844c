-- What a dead letter may come back with, what people noted about it, and the version of the application that was running.
alter table windlass_dead_letters add column edited_payload text;
alter table windlass_dead_letters add column edited_by text;
alter table windlass_dead_letters add column edited_at integer;
alter table windlass_dead_letters add column notes text not null default '[]';
alter table windlass_dead_letters add column version text;
-- The letters of one kind in the order they came: the first of them, and those that a requeue goes through.
create index windlass_dead_letters_groups on windlass_dead_letters (fingerprint, id);

-- With the worker and not with each run: a run names its worker, so the hot path writes nothing more.
alter table windlass_workers add column app_version text;
create table windlass_versions (
    version text primary key,
    first_seen_at integer not null
) strict;

-- Requeues that try a few letters first. `runs` lists letter, job and the job's executions at that moment.
create table windlass_canaries (
    id integer primary key autoincrement,
    state text not null default 'trying',
    task text,
    fingerprint text,
    size integer not null,
    runs text not null,
    succeeded integer not null default 0,
    requeued integer not null default 0,
    refused integer not null default 0,
    after_letter integer not null,
    until_letter integer not null,
    reason text,
    created_by text not null,
    created_at integer not null,
    updated_at integer not null,
    ended_at integer,
    constraint windlass_canaries_state check (state in ('trying', 'requeuing', 'done', 'stopped', 'cancelled')),
    constraint windlass_canaries_ended check ((ended_at is not null) = (state in ('done', 'stopped', 'cancelled')))
) strict;
-- One at a time for the same letters.
create unique index windlass_canaries_active on windlass_canaries (coalesce(task, ''), coalesce(fingerprint, ''))
    where ended_at is null;
