-- name: stop_run
{chosen}
update windlass_jobs as j set stop_requested = true, updated_at = {now}
{where_chosen} and {may_stop}
returning j.id

-- name: pause
{chosen}
update windlass_jobs as j set state = 'paused', paused_at = {now}, held = false, updated_at = {now}
{where_chosen}
  and {may_pause}
returning j.id

-- name: disable
{chosen}
update windlass_jobs as j set
    state = case when j.state = 'running' then j.state else 'paused' end,
    paused_at = case when j.state = 'running' then null else coalesce(j.paused_at, {now}) end,
    held = j.state = 'running', updated_at = {now}
{where_chosen}
  and {may_disable}
returning j.id

-- name: enable
{chosen}
update windlass_jobs as j set
    state = case when j.state = 'paused' then 'scheduled' else j.state end, paused_at = null, held = false, updated_at = {now}
{where_chosen}
  and {may_enable}
returning j.id

-- name: run_now
-- A paused job runs once and is paused again; a running one runs once more after its run.
{chosen}
update windlass_jobs as j set
    state = case when j.state = 'paused' or j.spawn then 'scheduled' when j.state = 'running' then j.state else 'pending' end,
    wait_reason = case when j.state <> 'running' then 'operator' end,
    run_at = case when j.state = 'running' then j.run_at else {least}(j.run_at, {now}) end,
    rerun_at = case when j.state = 'running' then {now} end,
    rerun_slot_at = case when j.state = 'running' then j.rerun_slot_at end,
    held = j.held or j.state = 'paused', paused_at = null, updated_at = {now}
{where_chosen}
  and {may_run_now}
returning j.id

-- name: boost
-- Never down: a priority above the ceiling stays. The inner ceiling keeps the sum within an integer.
{chosen}
update windlass_jobs as j set
    priority = {greatest}(j.priority, {least}(:most, {least}(j.priority, :most) + :amount)),
    base_priority = {greatest}(j.base_priority, {least}(:most, {least}(j.base_priority, :most) + :amount)), updated_at = {now}
{where_chosen} and {may_boost}
returning j.id

-- name: set_priority
{chosen}
update windlass_jobs as j set priority = :priority, base_priority = :priority, updated_at = {now}
{where_chosen} and {may_set_priority}
returning j.id

-- name: lock_jobs
-- Before a read that a decision hangs on; in id order, as everywhere.
select j.id from windlass_jobs j where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by j.id for update

-- name: holders_of
select j.id, o.id from windlass_jobs j
join windlass_jobs o on o.task = j.task and o.unique_slot = j.unique_key and o.id <> j.id
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))

-- name: buriable
select j.id, j.task from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
  and {may_bury}
order by j.id

-- name: postponable
select j.id, j.retry, j.attempt from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and j.state = 'pending'
order by j.id

-- name: leased
-- As `lapsed`, of jobs by number and whenever their lease ends.
select j.id, j.task, j.lane, '{}', {claimed_rest}, j.started_at, j.stop_requested, j.state = 'cancelled', {recorded_log}
from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and j.token is not null
order by j.id

-- name: highest_job
select coalesce(max(id), 0) from windlass_jobs

-- name: window_end
select max(id) from (
    select id from windlass_jobs where id > :after and id <= :until order by id limit :window
) as seen

-- name: page_ids
select j.id from windlass_jobs j where j.id > :after and j.id <= :until and {job_matches} order by j.id

-- name: matching_ids
-- Locked and checked again: what another transaction changed since the page was read no longer matches.
select j.id from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and {job_matches}
order by j.id for update of j
