select 'b17d' || substr(lpad(to_hex(x.number), 8, '0'), 1, 4) || '-' || substr(lpad(to_hex(x.number), 8, '0'), 5)
        || '-800' || (4 + (x.job_id >> 62)) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 1, 4) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 5) as id, x.job_id,
        x.worker as worker_id, x.started_at as started_at,
    x.finished_at as finished_at, case when x.status = 'completed' then 1 else 0 end as success, x.log_excerpt, x.error
from windlass_executions x
