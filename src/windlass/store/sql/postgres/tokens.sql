-- name: mint_token
insert into windlass_tokens (name, role, lanes, digest, created_by, created_at, expires_at, worker)
values (:name, :role, :token_lanes::json, :digest, :by::text, {now}, {now} + :expires_in::interval, :worker::text)
returning id, name, role, lanes::text, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker

-- name: find_token
select id, name, role, lanes::text, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker
from windlass_tokens where digest = :digest

-- name: revoke_token
update windlass_tokens set revoked_at = coalesce(revoked_at, {now}) where id = :token_id
returning id, name, role, lanes::text, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker

-- name: see_tokens
with used as (
    select id from windlass_tokens where id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
    order by id for update skip locked
)
update windlass_tokens t set seen_at = {now} from used where t.id = used.id
returning t.id

-- name: list_tokens
select id, name, role, lanes::text, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker
from windlass_tokens where id > :after order by id limit :limit

-- name: count_tokens
select count(*) from (select id from windlass_tokens limit :most) as counted

-- name: count_live_tokens
select count(*) from windlass_tokens where revoked_at is null and (expires_at is null or expires_at > {now})
