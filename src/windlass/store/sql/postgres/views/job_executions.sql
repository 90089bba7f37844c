select 'b17d' || substr(lpad(to_hex(x.number), 8, '0'), 1, 4) || '-' || substr(lpad(to_hex(x.number), 8, '0'), 5)
        || '-800' || (4 + (x.job_id >> 62)) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 1, 4) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 5) as id,
    'b17d0000-0000-800' || (2 + (x.job_id >> 62)) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 1, 4) || '-'
        || substr(to_hex((x.job_id & 4611686018427387903) | (-9223372036854775807 - 1)), 5) as job_id,
    x.number as execution_number, x.status, x.started_at as started_at, x.finished_at as completed_at,
    floor(extract(epoch from x.finished_at - x.started_at) * 1000)::bigint as duration_ms, coalesce(x.items_crawled,
        0) as items_crawled, coalesce(x.items_indexed, 0) as items_indexed,
    x.error as error_message, x.stack_trace, x.cpu_time_ms, x.memory_peak_mb,
    case when x.attempt > 0 then x.attempt - 1 else 0 end as retry_attempt, x.metadata
from windlass_executions x
