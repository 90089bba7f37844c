-- name: mark_reminders
update windlass_reminders as r set job_id = m.value ->> 'job_id', enqueued_at = {now}
from json_each(:reminders) as m
where r.id = m.value ->> 'id' and r.enqueued_at is null
returning id
