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

-- name: list_tokens
select id, name, role, lanes::text, created_by, created_at, expires_at, revoked_at, seen_at,
    revoked_at is null and (expires_at is null or expires_at > {now}), worker
from windlass_tokens where id > :after order by id limit :limit

-- name: count_tokens
select count(*) from (select id from windlass_tokens limit :most) as counted

-- name: count_live_tokens
select count(*) from windlass_tokens where revoked_at is null and (expires_at is null or expires_at > {now})

-- name: open_session
insert into windlass_sessions (digest, principal, role, csrf, created_at, expires_at)
values (:digest, :principal, :role, :csrf, {now}, {now} + :lasts::interval)
returning principal, role, csrf, created_at, expires_at

-- name: find_session
select principal, role, csrf, created_at, expires_at from windlass_sessions where digest = :digest and expires_at > {now}

-- name: close_session
delete from windlass_sessions where digest = :digest returning digest

-- name: close_sessions
delete from windlass_sessions where principal = :principal returning digest

-- name: prune_sessions
delete from windlass_sessions where digest = any(array(
    select digest from windlass_sessions where expires_at <= {now} order by expires_at, digest limit :limit for update skip locked
))
returning digest

-- name: add_signature
insert into windlass_signatures (digest, expires_at) values (:digest, {now} + :lasts::interval)
on conflict (digest) do nothing
returning digest

-- name: prune_signatures
delete from windlass_signatures where digest = any(array(
    select digest from windlass_signatures where expires_at <= {now} order by expires_at, digest limit :limit for update skip locked
))
returning digest

-- name: add_audit
insert into windlass_audit (at, principal, action, target, outcome, details, request_id)
values ({now}, :principal, :action, :target::text, :outcome, :details::json, :request_id::text)
returning id

-- name: list_audit
select {audit_columns} from windlass_audit
where id < :before and (:principal::text is null or principal = :principal::text)
  and (:action::text is null or action = :action::text) and (:target::text is null or target = :target::text)
  and (:since::timestamptz is null or at >= :since::timestamptz)
order by id desc limit :limit

-- name: count_audit
select count(*) from (
    select id from windlass_audit
    where (:principal::text is null or principal = :principal::text)
      and (:action::text is null or action = :action::text) and (:target::text is null or target = :target::text)
      and (:since::timestamptz is null or at >= :since::timestamptz)
    limit :most
) as counted

-- name: last_link
select place, chain from windlass_audit where place is not null order by place desc limit 1

-- name: list_unchained
select {audit_columns} from windlass_audit where chain is null order by id limit :limit

-- name: list_chained
select {audit_columns} from windlass_audit where place > :after order by place limit :limit

-- name: list_old_refusals
-- Never the last link: the next line is chained to it.
select {audit_columns} from windlass_audit
where action = 'refuse' and place is not null and at < {now} - :keep_for::interval
  and place < (select max(m.place) from windlass_audit m where m.place is not null)
order by place limit :limit

-- name: delete_refusals
delete from windlass_audit
where id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and action = 'refuse' and place is not null
returning id

-- name: list_prunings
select {audit_columns} from windlass_audit where action = 'prune refusals' and id > :after order by id limit :limit
