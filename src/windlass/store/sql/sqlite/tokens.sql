-- name: mint_token
insert into windlass_tokens (name, role, lanes, digest, created_by, created_at, expires_at, worker)
values (:name, :role, :token_lanes, :digest, :by, {now}, {now} + :expires_in, :worker)
returning id, name, role, lanes, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker

-- name: find_token
select id, name, role, lanes, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker
from windlass_tokens where digest = :digest

-- name: revoke_token
update windlass_tokens set revoked_at = coalesce(revoked_at, {now}) where id = :token_id
returning id, name, role, lanes, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker

-- name: see_tokens
update windlass_tokens set seen_at = {now} where id in (select value from json_each(:ids))
returning id

-- name: list_tokens
select id, name, role, lanes, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker
from windlass_tokens where id > :after order by id limit :limit

-- name: count_tokens
select count(*) from (select id from windlass_tokens limit :most) as counted

-- name: count_live_tokens
select count(*) from windlass_tokens where revoked_at is null and (expires_at is null or expires_at > {now})
