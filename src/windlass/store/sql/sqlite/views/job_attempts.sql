select 'b17d' || substr(printf('%08x', x.number), 1, 4) || '-' || substr(printf('%08x', x.number), 5) || '-800'
        || (4 + (x.job_id >> 62)) || '-'
        || substr(printf('%016x', (x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 1, 4) || '-'
        || substr(printf('%016x', (x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 5) as id, x.job_id,
        x.worker as worker_id, strftime('%Y-%m-%d %H:%M:%S', x.started_at / 1000000, 'unixepoch') || printf('.%06d',
        x.started_at % 1000000) as started_at,
    strftime('%Y-%m-%d %H:%M:%S', x.finished_at / 1000000, 'unixepoch') || printf('.%06d',
        x.finished_at % 1000000) as finished_at, case when x.status = 'completed' then 1 else 0 end as success,
        x.log_excerpt, x.error
from windlass_executions x
