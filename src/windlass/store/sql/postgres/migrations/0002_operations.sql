-- The breaker that gates a task's claims; what it opens for and for how long is said by the code that records.
alter table windlass_tasks add column breaker text;

-- A collection is read in the order of its items, page by page.
create index windlass_items_collections on windlass_items (collection, id);

-- A task may be paused before any process declared it; only declared ones are known.
alter table windlass_tasks add column is_declared boolean not null default true;

-- Retention walks jobs with a history; the count is in the index, so that short ones cost no look at the job.
create index windlass_jobs_histories on windlass_jobs (id, executions) where executions > 1;
create index windlass_dead_letters_settled on windlass_dead_letters (coalesce(closed_at, acknowledged_at), id);

-- The order in which lines were chained: a line may become visible after one with a higher id.
alter table windlass_audit add column place bigint;
alter table windlass_audit add constraint windlass_audit_place check ((chain is null) = (place is null));
create unique index windlass_audit_places on windlass_audit (place) where place is not null;

create function windlass_audit_refuse() returns trigger language plpgsql as $$
begin
    raise exception 'windlass_audit is append-only' using errcode = 'integrity_constraint_violation';
end $$;
create trigger windlass_audit_edited before update on windlass_audit for each row
    when (old.chain is not null or new.chain is null
        or (new.id, new.at, new.principal, new.action, new.target, new.outcome, new.details::text, new.request_id)
            is distinct from (old.id, old.at, old.principal, old.action, old.target, old.outcome, old.details::text, old.request_id))
    execute function windlass_audit_refuse();
create trigger windlass_audit_deleted before delete on windlass_audit for each row execute function windlass_audit_refuse();
create trigger windlass_audit_emptied before truncate on windlass_audit for each statement execute function windlass_audit_refuse();
