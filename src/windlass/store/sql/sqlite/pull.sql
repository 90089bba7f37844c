-- name: pick_{direction}_arm
select id, run_at, grp from (
    select id, run_at, coalesce(correlation_id, subject, '') as grp from windlass_jobs indexed by windlass_jobs_pending
    where state = 'pending' and crashes = 0 and lane = :lane_{i} and task = :task_{i} and priority = :priority
    order by run_at {down}, id {down} limit {most_candidates}
)
union all select id, run_at, grp from (
    select id, run_at, coalesce(correlation_id, subject, '') as grp from windlass_jobs indexed by windlass_jobs_suspects
    where state = 'pending' and crashes > 0 and lane = :lane_{i} and task = :task_{i} and priority = :priority
    order by run_at {down}, id {down} limit {most_candidates}
)

-- name: last_turns
-- Written exactly as in the index, so that it is used.
select grp, finished_at from (
    select g.value as grp, (
        select j.finished_at from windlass_jobs j
        where j.lane = 'pull' and j.finished_at is not null and coalesce(j.correlation_id, j.subject, '') = g.value
        order by j.finished_at desc limit 1
    ) as finished_at
    from json_each(:groups) as g
) where finished_at is not null

-- name: claim_picked
-- The first of these that is still there.
update windlass_jobs set {taken}
where id = (
    select k.id from json_each(:ids) as s cross join windlass_jobs k on k.id = s.value
    where k.state = 'pending' and (select version from windlass_gates) = :version
    order by s.key limit 1
)
returning {claimed_columns}

-- name: repull
-- Its first answer was lost, so the work begins only now and the lease with it.
update windlass_jobs set
    lease_expires_at = max(lease_expires_at, {now} + :lease), updated_at = {now}
where id = :id and token = :token and state = 'running'
returning {claimed_columns}
