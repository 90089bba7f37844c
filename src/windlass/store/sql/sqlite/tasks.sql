-- name: stale_tasks
-- Read before anything is written: workers that start together and declare the same tasks only read.
select s.value ->> 'name' as name, s.value ->> 'breaker' is not t.breaker
from json_each(:tasks) as s left join windlass_tasks t on t.name = s.value ->> 'name'
where t.name is null or not t.is_declared or t.lane <> s.value ->> 'lane' or t.options <> s.value ->> 'options'
   or t.breaker is not s.value ->> 'breaker' or t.seen_at < {now} - 60000000
order by 1

-- name: declare_tasks
insert into windlass_tasks (name, lane, options, breaker, is_declared, first_seen_at, seen_at)
select value ->> 'name', value ->> 'lane', value ->> 'options', value ->> 'breaker', 1, {now}, {now} from json_each(:tasks)
where true order by 1
on conflict (name) do update set
    lane = excluded.lane, options = excluded.options, breaker = excluded.breaker, is_declared = 1, seen_at = excluded.seen_at
returning name

-- name: list_tasks
select name, lane, options, breaker, is_declared, paused_at, paused_by, first_seen_at, seen_at
from windlass_tasks where name > :after_name order by name limit :limit

-- name: get_known_task
select name, lane, options, breaker, is_declared, paused_at, paused_by, first_seen_at, seen_at
from windlass_tasks where name = :name

-- name: knows_task
select count(*) from windlass_tasks where name = :task and is_declared

-- name: count_tasks
select count(*) from (select name from windlass_tasks limit :most) as counted
