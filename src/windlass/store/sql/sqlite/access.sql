-- name: see_tokens
update windlass_tokens set seen_at = {now} where id in (select value from json_each(:ids))
returning id

-- name: lock_chain
-- The transaction has the file to itself.
select ''

-- name: add_links
update windlass_audit set chain = s.value ->> 'chain', place = s.value ->> 'place'
from json_each(:links) as s where windlass_audit.id = s.value ->> 'id' and windlass_audit.chain is null
returning id
