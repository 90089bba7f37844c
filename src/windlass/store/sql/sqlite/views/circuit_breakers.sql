select k.name as service_name, k.state, k.failures as failure_count, k.successes as success_count,
    strftime('%Y-%m-%d %H:%M:%S', k.last_failure_at / 1000000, 'unixepoch') || printf('.%06d',
        k.last_failure_at % 1000000) as last_failure_at, strftime('%Y-%m-%d %H:%M:%S', k.opened_at / 1000000,
        'unixepoch') || printf('.%06d', k.opened_at % 1000000) as opened_at,
    strftime('%Y-%m-%d %H:%M:%S', k.half_opened_at / 1000000, 'unixepoch') || printf('.%06d',
        k.half_opened_at % 1000000) as half_opened_at, strftime('%Y-%m-%d %H:%M:%S', k.updated_at / 1000000,
        'unixepoch') || printf('.%06d', k.updated_at % 1000000) as updated_at
from windlass_breakers k
