-- name: add_signature
insert into windlass_signatures (digest, expires_at) values (:digest, {now} + :lasts::interval)
on conflict (digest) do nothing
returning digest

-- name: prune_signatures
delete from windlass_signatures where digest = any(array(
    select digest from windlass_signatures where expires_at <= {now} order by expires_at, digest limit :limit for update skip locked
))
returning digest
