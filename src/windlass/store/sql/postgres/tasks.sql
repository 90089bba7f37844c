-- name: stale_tasks
-- Read before anything is written: workers that start together and declare the same tasks only read.
select s.name, s.breaker is distinct from t.breaker
from json_to_recordset(:tasks::json) as s (name text, lane text, options text, breaker text)
left join windlass_tasks t on t.name = s.name
where t.name is null or not t.is_declared or t.lane <> s.lane or t.options::text <> s.options
   or t.breaker is distinct from s.breaker or t.seen_at < {now} - interval '1 minute'
order by s.name

-- name: declare_tasks
insert into windlass_tasks (name, lane, options, breaker, is_declared, first_seen_at, seen_at)
select s.name, s.lane, s.options::json, s.breaker, true, {now}, {now}
from json_to_recordset(:tasks::json) as s (name text, lane text, options text, breaker text) order by s.name
on conflict (name) do update set
    lane = excluded.lane, options = excluded.options, breaker = excluded.breaker, is_declared = true, seen_at = excluded.seen_at
returning name

-- name: list_tasks
select name, lane, options::text, breaker, is_declared, paused_at, paused_by, first_seen_at, seen_at
from windlass_tasks where name > :after_name order by name limit :limit

-- name: get_known_task
select name, lane, options::text, breaker, is_declared, paused_at, paused_by, first_seen_at, seen_at
from windlass_tasks where name = :name

-- name: knows_task
select count(*) from windlass_tasks where name = :task and is_declared

-- name: count_tasks
select count(*) from (select name from windlass_tasks limit :most) as counted
