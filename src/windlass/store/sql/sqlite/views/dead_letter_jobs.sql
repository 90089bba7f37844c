select d.id, d.original_job, d.error as error_message, d.details as error_details, strftime('%Y-%m-%d %H:%M:%S',
        d.died_at / 1000000, 'unixepoch') || printf('.%06d', d.died_at % 1000000) as died_at,
    d.acknowledged_at is not null or d.closed_at is not null as acknowledged, d.acknowledged_by,
    strftime('%Y-%m-%d %H:%M:%S', d.acknowledged_at / 1000000, 'unixepoch') || printf('.%06d',
        d.acknowledged_at % 1000000) as acknowledged_at
from windlass_dead_letters d
