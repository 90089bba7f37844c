-- name: upsert_source
insert into windlass_sources as s (id, name, url, metadata, created_at, updated_at)
values (:source_id, :name, :url, :metadata, {now}, {now})
on conflict (id) do update set
    name = excluded.name, url = excluded.url, metadata = coalesce(excluded.metadata, s.metadata), updated_at = {now}
returning id, name, url, last_run_at, metadata, created_at, updated_at

-- name: get_source
select id, name, url, last_run_at, metadata, created_at, updated_at from windlass_sources where id = :source_id

-- name: list_sources
select id, name, url, last_run_at, metadata, created_at, updated_at from windlass_sources
where id > :after_source order by id limit :limit

-- name: stale_sources
-- Those that never ran first. Two arms, so that each begins where the page before it ended.
select id, name, url, last_run_at, metadata, created_at, updated_at from (
    select id, name, url, last_run_at, metadata, created_at, updated_at from windlass_sources
    where last_run_at is null and :after_at is null and id > :after_source order by id limit :limit
)
union all
select id, name, url, last_run_at, metadata, created_at, updated_at from (
    select id, name, url, last_run_at, metadata, created_at, updated_at from windlass_sources
    where last_run_at < :ran_before and (last_run_at, id) > (coalesce(:after_at, -1 << 62), :after_source)
    order by last_run_at, id limit :limit
)
limit :limit

-- name: touch_source
update windlass_sources set last_run_at = max(coalesce(last_run_at, {now}), {now}), updated_at = {now} where id = :source_id
returning id, name, url, last_run_at, metadata, created_at, updated_at

-- name: delete_source
delete from windlass_sources where id = :source_id
returning id, name, url, last_run_at, metadata, created_at, updated_at

-- name: count_sources
select count(*) from (select id from windlass_sources limit :most) as counted
