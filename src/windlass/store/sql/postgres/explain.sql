-- name: only_by_index
-- Until the end of the transaction: a bound of thousands lets the planner read the table as a whole, which may have millions.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)

-- name: count_before
-- Two walks along the index of claims for each task: what has a higher priority, and what has the same and is due earlier.
-- As one condition the second would go on through everything that is due later. One bound for all tasks together.
-- Ordered as the index is, so that no walk reads more than its bound.
select task, count(*) from (
    select n.task from json_array_elements_text(:tasks::json) as s cross join lateral (
        (select k.task from windlass_jobs k
         where k.state = 'pending' and k.crashes = 0 and k.lane = :lane::text and k.task = s.value and ~k.priority < ~:priority::integer
         order by ~k.priority, k.run_at, k.id limit {most_before})
        union all
        (select k.task from windlass_jobs k
         where k.state = 'pending' and k.crashes = 0 and k.lane = :lane::text and k.task = s.value and ~k.priority = ~:priority::integer
           and (k.run_at, k.id) < (:edge_at::timestamptz, :edge_id::bigint)
         order by k.run_at, k.id limit {most_before})
    ) as n limit {most_before}
) as seen
group by task order by task

-- name: count_suspects_before
select task, count(*) from (
    select n.task from json_array_elements_text(:tasks::json) as s cross join lateral (
        (select k.task from windlass_jobs k
         where k.state = 'pending' and k.crashes > 0 and k.lane = :lane::text and k.task = s.value and ~k.priority < ~:priority::integer
         order by ~k.priority, k.run_at, k.id limit {most_before})
        union all
        (select k.task from windlass_jobs k
         where k.state = 'pending' and k.crashes > 0 and k.lane = :lane::text and k.task = s.value and ~k.priority = ~:priority::integer
           and (k.run_at, k.id) < (:edge_at::timestamptz, :edge_id::bigint)
         order by k.run_at, k.id limit {most_before})
    ) as n limit {most_before}
) as seen
group by task order by task
