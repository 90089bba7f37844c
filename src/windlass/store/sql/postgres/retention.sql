-- name: long_histories
-- A page of jobs with more runs than are kept, and which of them may go: from the oldest up to the last that is both beyond
-- the newest :keep and older than :keep_for, at most :most. A range of numbers, so that no gap is left whatever the clock did.
with page as materialized (
    select id, executions - case state when 'running' then 1 else 0 end - :keep as beyond from windlass_jobs
    where executions > 1 and executions > :keep and id > :after order by id limit :limit
)
select p.id, o.number, coalesce((
    select x.number - 1 from windlass_executions x
    where x.job_id = p.id and x.number between o.number and least(p.beyond, o.number + :most - 1)
      and x.finished_at >= {now} - :keep_for::interval
    order by x.number limit 1
), least(p.beyond, o.number + :most - 1))
from page p left join lateral (
    select x.number from windlass_executions x where x.job_id = p.id order by x.number limit 1
) o on true
order by p.id

-- name: prune_executions
-- Nothing here can become wrong again: a run that is old and beyond the newest stays so. The keys of its reports go with it:
-- those of a job that comes back for ever would otherwise pile up.
with s as materialized (
    select s.id, s.first, s.last, {unknown}
    from json_to_recordset(:runs::json) as s (id bigint, first integer, last integer) order by s.id
), gone as (
    delete from windlass_executions where ctid = any(array(
        select k.tid from s cross join lateral (
            select x.ctid as tid from windlass_executions x
            where x.job_id = s.id and x.number between s.first and s.last order by x.number for update skip locked
        ) as k where {few}
    )) returning job_id, token
), keys as (
    delete from windlass_idempotency i using gone where i.job_id = gone.job_id and i.token = gone.token
)
select count(*) from gone

-- name: old_jobs
select j.id, j.closed_at, {prunable} from windlass_jobs j
where j.state = :state and j.closed_at < {now} - :keep_for::interval and (j.closed_at, j.id) > (:after_at, :after)
order by j.closed_at, j.id limit :limit

-- name: lock_old_jobs
-- In a statement of its own: what follows must see what a rival that held the row has committed.
select j.id from windlass_jobs j where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by j.id for update skip locked

-- name: prune_jobs
delete from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
  and j.closed_at < {now} - :keep_for::interval and {prunable}
returning j.id

-- name: prune_parts
with gone as materialized (
    select array(select value::bigint from json_array_elements_text(:ids::json)) as ids
), bodies as (
    delete from windlass_bodies where job_id = any((select ids from gone)::bigint[])
), keys as (
    delete from windlass_idempotency where job_id = any((select ids from gone)::bigint[])
), runs as (
    delete from windlass_executions where job_id = any((select ids from gone)::bigint[]) returning job_id
)
select count(*) from runs

-- name: prune_letters
with gone as (
    delete from windlass_dead_letters where id = any(array(
        select id from windlass_dead_letters where coalesce(closed_at, acknowledged_at) < {now} - :keep_for::interval
        order by coalesce(closed_at, acknowledged_at), id limit :limit for update skip locked
    )) returning id
)
select count(*) from gone
