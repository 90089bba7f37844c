-- name: mark_reminders
update windlass_reminders as r set job_id = m.job_id, enqueued_at = {now}
from json_to_recordset(:reminders::json) as m (id bigint, job_id bigint)
where r.id = m.id and r.enqueued_at is null
returning r.id
