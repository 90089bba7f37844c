select j.id, j.task as type, b.payload, case when j.state = 'running' then 'processing' when j.state = 'failed' then 'dead'
        when j.state = 'scheduled' and j.wait_reason in ('retry', 'lost') then 'failed'
        when j.state in ('pending', 'scheduled') then 'pending' else j.state end as status,
    100 - j.priority as priority, j.attempt as attempts,
    coalesce(j.max_attempts, case
            case when j.retry like '{%' then coalesce(j.retry ->> 'profile', 'task') else j.retry end
        when 'task' then 3 when 'pull' then coalesce(
            (select cast(s.value as integer) from windlass_settings s where s.name = 'MAX_ATTEMPTS_DEFAULT'), 5)
        else 4 end) as max_attempts,
    strftime('%Y-%m-%d %H:%M:%S', coalesce(j.slot_at,
        j.run_at) / 1000000, 'unixepoch') || printf('.%06d', coalesce(j.slot_at, j.run_at) % 1000000) as scheduled_at,
    strftime('%Y-%m-%d %H:%M:%S', j.run_at / 1000000, 'unixepoch') || printf('.%06d', j.run_at % 1000000) as run_at,
        strftime('%Y-%m-%d %H:%M:%S', j.started_at / 1000000, 'unixepoch') || printf('.%06d',
        j.started_at % 1000000) as started_at,
    case when j.state = 'completed' then strftime('%Y-%m-%d %H:%M:%S', j.closed_at / 1000000, 'unixepoch')
        || printf('.%06d', j.closed_at % 1000000) end as completed_at, j.last_error as error_message, j.last_error,
    strftime('%Y-%m-%d %H:%M:%S', j.last_error_at / 1000000, 'unixepoch') || printf('.%06d',
        j.last_error_at % 1000000) as last_error_at,
    coalesce(j.correlation_id, 'b17d0000-0000-800' || (2 + (j.id >> 62)) || '-' || substr(printf('%016x',
        (j.id & 4611686018427387903) | (-9223372036854775807 - 1)), 1, 4) || '-' || substr(printf('%016x',
        (j.id & 4611686018427387903) | (-9223372036854775807 - 1)), 5)) as correlation_id,
    j.parent_id as parent_job_id, b.created_by, j.unique_key as dedup_key, strftime('%Y-%m-%d %H:%M:%S',
        j.created_at / 1000000, 'unixepoch') || printf('.%06d', j.created_at % 1000000) as created_at,
    strftime('%Y-%m-%d %H:%M:%S', j.updated_at / 1000000, 'unixepoch') || printf('.%06d',
        j.updated_at % 1000000) as updated_at
from windlass_jobs j join windlass_bodies b on b.job_id = j.id
