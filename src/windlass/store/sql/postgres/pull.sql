-- name: pick_{direction}_arm
(select id, run_at, coalesce(correlation_id, subject, '') as grp from windlass_jobs
 where state = 'pending' and crashes = 0 and lane = :lane_{i} and task = :task_{i} and ~priority = ~:priority::integer
 order by run_at {down}, id {down} limit {most_candidates})
union all
(select id, run_at, coalesce(correlation_id, subject, '') as grp from windlass_jobs
 where state = 'pending' and crashes > 0 and lane = :lane_{i} and task = :task_{i} and ~priority = ~:priority::integer
 order by run_at {down}, id {down} limit {most_candidates})

-- name: last_turns
-- Written exactly as in the index, so that it is used.
select g.grp, t.finished_at
from json_array_elements_text(:groups::json) as g (grp) cross join lateral (
    select j.finished_at from windlass_jobs j
    where j.lane = 'pull' and j.finished_at is not null and coalesce(j.correlation_id, j.subject, '') = g.grp
    order by j.finished_at desc limit 1
) as t

-- name: claim_picked
-- The first of these that is still there and not locked by another claim.
update windlass_jobs j set {taken}
where j.ctid = any(array(
    select w.tid from (
        select s.id::bigint as id from json_array_elements_text(:ids::json) with ordinality as s (id, place)
        order by s.place limit {most_candidates}
    ) as picked cross join lateral (
        select k.ctid as tid from windlass_jobs k where k.id = picked.id and k.state = 'pending' for update skip locked
    ) as w
    where (select version from windlass_gates) = :version
    limit 1
))
returning {claimed_columns}

-- name: repull
-- Its first answer was lost, so the work begins only now and the lease with it.
update windlass_jobs j set
    lease_expires_at = greatest(j.lease_expires_at, {now} + :lease::interval), updated_at = {now}
where j.id = :id and j.token = :token and j.state = 'running'
returning {claimed_columns}
