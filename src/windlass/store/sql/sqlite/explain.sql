-- name: only_by_index
-- SQLite needs no check: its query names the index.
select 'off', 'off'

-- name: count_before
-- Two walks along the index of claims for each task: what has a higher priority, and what has the same and is due earlier.
-- As one condition the second would go on through everything that is due later. One bound for all tasks together.
select task, count(*) from (
    select n.task from json_each(:tasks) as s cross join windlass_jobs n indexed by windlass_jobs_pending
    where n.state = 'pending' and n.crashes = 0 and n.lane = :lane and n.task = s.value and n.priority > :priority
    union all
    select n.task from json_each(:tasks) as s cross join windlass_jobs n indexed by windlass_jobs_pending
    where n.state = 'pending' and n.crashes = 0 and n.lane = :lane and n.task = s.value and n.priority = :priority
      and (n.run_at, n.id) < (:edge_at, :edge_id)
    limit {most_before}
) as seen
group by task order by task

-- name: count_suspects_before
select task, count(*) from (
    select n.task from json_each(:tasks) as s cross join windlass_jobs n indexed by windlass_jobs_suspects
    where n.state = 'pending' and n.crashes > 0 and n.lane = :lane and n.task = s.value and n.priority > :priority
    union all
    select n.task from json_each(:tasks) as s cross join windlass_jobs n indexed by windlass_jobs_suspects
    where n.state = 'pending' and n.crashes > 0 and n.lane = :lane and n.task = s.value and n.priority = :priority
      and (n.run_at, n.id) < (:edge_at, :edge_id)
    limit {most_before}
) as seen
group by task order by task
