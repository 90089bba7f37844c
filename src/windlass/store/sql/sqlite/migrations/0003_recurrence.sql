-- Jobs whose rule has a say in missed slots are looked at when they are late; all others are not in here, and cost nothing.
-- A rule is JSON without spaces that leaves out what is usual, and a value cannot contain the bare quotes.
create index windlass_jobs_watched on windlass_jobs (run_at, id) where
    case when wait_reason = 'recurrence' and not spawn then
        case state when 'scheduled' then instr(cadence, '"misfire":"') > 0
            when 'pending' then instr(cadence, '"misfire":"skip"') > 0 else 0 end
    else 0 end;

-- A template asks for its unfinished jobs among any number of finished ones.
create index windlass_jobs_unfinished on windlass_jobs (parent_id, id)
    where parent_id is not null and (closed_at is null or token is not null);

-- What an application declared and no longer does.
create index windlass_bodies_declared on windlass_bodies (declared_by, declared_at, job_id) where declared_by is not null;
