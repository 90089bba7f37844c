-- name: see_tokens
with used as (
    select id from windlass_tokens where id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
    order by id for update skip locked
)
update windlass_tokens t set seen_at = {now} from used where t.id = used.id
returning t.id

-- name: lock_chain
-- One chainer at a time, and none that writers wait for; it ends with the transaction, so poolers may be between.
select pg_advisory_xact_lock(7301946200282)::text

-- name: add_links
update windlass_audit a set chain = s.chain, place = s.place
from json_to_recordset(:links::json) as s (id bigint, chain text, place bigint)
where a.id = s.id and a.chain is null
returning a.id
