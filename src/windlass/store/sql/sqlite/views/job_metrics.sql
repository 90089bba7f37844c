select 'b17d' || substr(printf('%08x', x.number), 1, 4) || '-' || substr(printf('%08x', x.number), 5) || '-800'
        || (4 + (x.job_id >> 62)) || '-'
        || substr(printf('%016x', (x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 1, 4) || '-'
        || substr(printf('%016x', (x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 5) as id,
        j.task as job_type, x.status, (x.finished_at - x.started_at) / 1000 as duration_ms, x.wait_ms as queue_time_ms,
    strftime('%Y-%m-%d %H:%M:%S', x.finished_at / 1000000, 'unixepoch') || printf('.%06d',
        x.finished_at % 1000000) as recorded_at
from windlass_executions x join windlass_jobs j on j.id = x.job_id
