select d.id, d.original_job, d.error as error_message, d.details as error_details, d.died_at as died_at,
    d.acknowledged_at is not null or d.closed_at is not null as acknowledged, d.acknowledged_by,
    d.acknowledged_at as acknowledged_at
from windlass_dead_letters d
