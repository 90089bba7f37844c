-- name: start_canary
insert into windlass_canaries (
    task, fingerprint, size, runs, after_letter, until_letter, created_by, created_at, updated_at
)
values (:task::text, :fingerprint::text, 0, '[]', 0, 0, :by::text, {now}, {now})
on conflict do nothing
returning id

-- name: fill_canary
update windlass_canaries set size = :size::integer, runs = :runs::json, requeued = :requeued::integer, refused = :refused::integer,
    after_letter = :after::bigint, until_letter = :until::bigint
where id = :id::bigint
returning id

-- name: active_canary
select id from windlass_canaries
where ended_at is null and coalesce(task, '') = coalesce(:task::text, '')
  and coalesce(fingerprint, '') = coalesce(:fingerprint::text, '')

-- name: get_canary
select {canary_columns} from windlass_canaries c where c.id = :id::bigint

-- name: list_canaries
select {canary_columns} from windlass_canaries c
where :is_active::boolean is null or (c.ended_at is null) = :is_active::boolean
order by c.id desc limit :limit

-- name: active_canaries
select id from windlass_canaries where ended_at is null order by id limit :limit

-- name: lock_canary
-- Another process that has it does this step.
select {canary_columns} from windlass_canaries c where c.id = :id::bigint and c.ended_at is null for update skip locked

-- name: move_canary
update windlass_canaries set state = :state, succeeded = :succeeded::integer, requeued = :requeued::integer,
    refused = :refused::integer, after_letter = :after::bigint, reason = :reason::text, updated_at = {now},
    ended_at = case when :state in ('done', 'stopped', 'cancelled') then {now} end
where id = :id::bigint and ended_at is null
returning id

-- name: cancel_canary
update windlass_canaries set state = 'cancelled', ended_at = {now}, updated_at = {now}
where id = :id::bigint and ended_at is null
returning id

-- name: forget_canaries
delete from windlass_canaries where ended_at is not null and id < (
    select c.id from windlass_canaries c order by c.id desc limit 1 offset :keep
)
returning id
