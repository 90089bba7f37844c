-- name: acknowledge
update windlass_dead_letters set acknowledged_at = {now}, acknowledged_by = :by, note = :note
where id in (select value from json_each(:ids)) and acknowledged_at is null
returning id

-- name: list_letters_alike
{letters_head}
select {letter_facts} from windlass_dead_letters d indexed by windlass_dead_letters_kinds
    where d.fingerprint = :fingerprint and (d.died_at, d.id) < (:edge_at, :edge_id)
    order by d.died_at desc, d.id desc limit {most_letters}
{letters_tail}

-- name: set_payloads
update windlass_bodies set payload = e.value ->> 'payload'
from json_each(:batch) as e
where job_id = e.value ->> 'id'
returning job_id
