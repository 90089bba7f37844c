-- name: open_session
insert into windlass_sessions (digest, principal, role, csrf, created_at, expires_at)
values (:digest, :principal, :role, :csrf, {now}, {now} + :lasts)
returning principal, role, csrf, created_at, expires_at

-- name: find_session
select principal, role, csrf, created_at, expires_at from windlass_sessions where digest = :digest and expires_at > {now}

-- name: close_session
delete from windlass_sessions where digest = :digest returning digest

-- name: close_sessions
delete from windlass_sessions where principal = :principal returning digest

-- name: prune_sessions
delete from windlass_sessions where digest in (
    select digest from windlass_sessions where expires_at <= {now} order by expires_at, digest limit :limit
)
returning digest
