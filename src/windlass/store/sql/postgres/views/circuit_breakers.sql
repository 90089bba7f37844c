select k.name as service_name, k.state, k.failures as failure_count, k.successes as success_count,
    k.last_failure_at as last_failure_at, k.opened_at as opened_at,
    k.half_opened_at as half_opened_at, k.updated_at as updated_at
from windlass_breakers k
