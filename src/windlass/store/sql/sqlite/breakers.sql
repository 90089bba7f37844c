-- name: ensure_breaker
-- Only for one that is about to open: a breaker without a row is closed.
insert into windlass_breakers (name, threshold, open_us, updated_at)
values (:name, :threshold, :open_us, {now})
on conflict (name) do nothing
returning name

-- name: lock_breaker
-- The transaction is the lock.
select b.name from windlass_breakers b where b.name = :name

-- name: get_breaker
select {breaker_columns} from windlass_breakers b where b.name = :name

-- name: list_breakers
select {breaker_columns} from windlass_breakers b where b.name > :after_name order by b.name limit :limit

-- name: count_breakers
select count(*) from (select 1 from windlass_breakers limit :most) as counted

-- name: change_breaker
update windlass_breakers set
    state = :state, failures = :failures, successes = :successes, threshold = :threshold, open_us = :open_us,
    last_failure_at = :last_failure_at, opened_at = :opened_at, probe_at = :probe_at, half_opened_at = :half_opened_at,
    probe_job_id = :probe_job_id, probe_token = :probe_token, last_probe_job_id = :last_probe_job_id, is_forced = :is_forced,
    updated_at = {now}
where name = :name;
select {breaker_columns} from windlass_breakers b where b.name = :name

-- name: add_breaker_event
insert into windlass_breaker_events (breaker, state, reason, job_id, at)
values (:name, :state, :reason, :job_id, {now})
returning id

-- name: list_breaker_events
select id, breaker, state, reason, job_id, at from windlass_breaker_events
where breaker = :name order by id desc limit :limit

-- name: prune_breaker_events
-- The newest of each stays: it says since when the breaker is as it is.
delete from windlass_breaker_events where id in (
    select e.id from windlass_breaker_events e
    where e.at < {now} - :keep_for and exists (
        select 1 from windlass_breaker_events later where later.breaker = e.breaker and later.id > e.id
    )
    order by e.id limit :limit
)
returning id

-- name: holds_lease
select count(*) > 0 from windlass_jobs j where j.id = :job_id and j.token = :token

-- name: claim_probe
-- One job of one slice, and not the one that the last probe was made with, so that a poison job is not every probe.
update windlass_jobs set {taken}
where id = (
    select id from windlass_jobs indexed by windlass_jobs_pending
    where state = 'pending' and crashes = 0 and lane = :lane and task = :task and id <> :avoid
      and (select version from windlass_gates) = :version
    order by priority desc, run_at, id limit 1
)
returning {claimed_columns}

-- name: claim_suspect_probe
-- The same where only suspects wait: otherwise their breaker would never be tried.
update windlass_jobs set {taken}
where id = (
    select id from windlass_jobs indexed by windlass_jobs_suspects
    where state = 'pending' and crashes > 0 and lane = :lane and task = :task and id <> :avoid
      and (select version from windlass_gates) = :version
    order by priority desc, run_at, id limit 1
)
returning {claimed_columns}

-- name: breakers_of_run
-- At most one breaker is tried with this job; of the one that gates its task, what the declaring code says is needed to count.
select b.name, b.threshold, b.open_us, null as options, 0 as failures from windlass_breakers b
where b.state = 'half_open' and b.probe_job_id = :job_id and b.probe_token = :token
union all
select t.breaker, null, null, t.options, coalesce(f.failures, 0) from windlass_tasks t
left join windlass_breaker_failures f on f.breaker = t.breaker
where t.name = :task and t.breaker is not null

-- name: add_breaker_failures
-- Those who fail at the same time wait for each other here, so that exactly one of them sees the threshold reached.
insert into windlass_breaker_failures (breaker, failures) values (:name, :failures)
on conflict (breaker) do update set failures = windlass_breaker_failures.failures + excluded.failures
returning failures

-- name: clear_breaker_failures
delete from windlass_breaker_failures where breaker = :name returning breaker

-- name: count_breaker_failures
select coalesce(sum(failures), 0) from windlass_breaker_failures where breaker = :name
