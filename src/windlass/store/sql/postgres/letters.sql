-- name: acknowledge
with c as materialized (
    select id from windlass_dead_letters
    where id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and acknowledged_at is null
    order by id for update
)
update windlass_dead_letters d set acknowledged_at = {now}, acknowledged_by = :by::text, note = :note::text
from c where d.id = c.id
returning d.id

-- name: list_letters_alike
-- Compared together: with a plain equality the order could be had from all deaths, by stepping over those of other kinds.
{letters_head}
select {letter_facts} from windlass_dead_letters d
    where d.fingerprint >= :fingerprint::text and (d.fingerprint, d.died_at, d.id) < (:fingerprint::text, :edge_at::timestamptz, :edge_id::bigint)
    order by d.fingerprint desc, d.died_at desc, d.id desc limit {most_letters}
{letters_tail}

-- name: set_payloads
update windlass_bodies b set payload = (e.value -> 'payload')
from json_array_elements(:batch::json) as e
where b.job_id = (e.value ->> 'id')::bigint
returning b.job_id
