-- The rules of a job's columns, looked at once for each statement. As constraints the server read the text of all of them anew
-- for every statement: half of what inserting one job took. The rule of leases stays a constraint: whatever else is broken, no
-- job runs without one. A condition that is null is met, as it is in a constraint.
create function windlass_check_jobs() returns trigger language plpgsql as $$
declare broken text;
begin
    select found.rule into broken from (
        select case
            when not (char_length(task) between 1 and 200) then 'task'
            when not (char_length(lane) between 1 and 200) then 'lane'
            when not (state in ('scheduled', 'pending', 'running', 'paused', 'completed', 'failed', 'cancelled')) then 'state'
            when not (wait_reason in ('new', 'operator', 'delay', 'retry', 'lost', 'snooze', 'released', 'recurrence'))
                then 'wait_reason'
            when not ((wait_reason is not null) = (state in ('scheduled', 'pending', 'paused'))) then 'waiting'
            when not ((closed_at is not null) = (state in ('completed', 'failed', 'cancelled'))) then 'closed'
            when not ((paused_at is not null) = (state = 'paused')) then 'paused'
            when not (state = 'running' or not (stop_requested or rerun_at is not null)) then 'run_marks'
            when not (rerun_slot_at is null or rerun_at is not null) then 'rerun_slot'
            when not (cadence is not null or not stop_requested) then 'stop'
            when not (not held or state in ('scheduled', 'pending', 'running')) then 'held'
            when not (slot_at is null or cadence is not null) then 'slot'
            when not (not spawn or (cadence is not null and state not in ('pending', 'running'))) then 'template'
            when not (priority >= base_priority) then 'priority'
            when not (max_attempts between 1 and 1000000) then 'max_attempts'
            when not (
                attempt >= 0 and executions >= 0 and crashes >= 0 and consecutive_failures >= 0 and completed_runs >= 0
                and progress_count >= 0 and result_count >= 0 and target_count >= 0 and timeout_us > 0
            ) then 'counters'
            when not (char_length(unique_key) between 1 and 1000) then 'unique_key'
            -- The constraint let a key without a scope pass, as a comparison with null is null.
            when not ((unique_scope is null) = (unique_key is null) and unique_scope in ('pending', 'active', 'forever'))
                then 'unique_scope'
            when not (unique_slot is null or unique_key is not null and unique_slot = unique_key) then 'unique_slot'
            when not (name is null or char_length(name) between 1 and 255 and cadence is not null) then 'name'
        end as rule from new_rows
    ) as found where found.rule is not null limit 1;
    if broken is not null then
        raise exception 'new row of windlass_jobs violates the rule "windlass_jobs_%"', broken
            using errcode = 'check_violation', table = 'windlass_jobs', constraint = 'windlass_jobs_' || broken;
    end if;
    return null;
end $$;
create trigger windlass_jobs_checked_inserted after insert on windlass_jobs
    referencing new table as new_rows for each statement execute function windlass_check_jobs();
create trigger windlass_jobs_checked_updated after update on windlass_jobs
    referencing new table as new_rows for each statement execute function windlass_check_jobs();
alter table windlass_jobs
    drop constraint windlass_jobs_task, drop constraint windlass_jobs_lane, drop constraint windlass_jobs_state,
    drop constraint windlass_jobs_wait_reason, drop constraint windlass_jobs_waiting, drop constraint windlass_jobs_closed,
    drop constraint windlass_jobs_paused, drop constraint windlass_jobs_run_marks, drop constraint windlass_jobs_rerun_slot,
    drop constraint windlass_jobs_stop, drop constraint windlass_jobs_held, drop constraint windlass_jobs_slot,
    drop constraint windlass_jobs_template, drop constraint windlass_jobs_priority, drop constraint windlass_jobs_max_attempts,
    drop constraint windlass_jobs_counters, drop constraint windlass_jobs_unique_key, drop constraint windlass_jobs_unique_scope,
    drop constraint windlass_jobs_unique_slot, drop constraint windlass_jobs_name;
