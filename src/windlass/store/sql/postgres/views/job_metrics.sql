select 'b17d' || substr(lpad(to_hex(x.number), 8, '0'), 1, 4) || '-' || substr(lpad(to_hex(x.number), 8, '0'), 5)
        || '-800' || (4 + (x.job_id >> 62)) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 1, 4) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 5) as id, j.task as job_type,
        x.status, floor(extract(epoch from x.finished_at - x.started_at) * 1000)::bigint as duration_ms,
        x.wait_ms as queue_time_ms,
    x.finished_at as recorded_at
from windlass_executions x join windlass_jobs j on j.id = x.job_id
