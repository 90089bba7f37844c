-- name: upsert_source
insert into windlass_sources as s (id, name, url, metadata, created_at, updated_at)
values (:source_id, :name, :url, :metadata::json, {now}, {now})
on conflict (id) do update set
    name = excluded.name, url = excluded.url, metadata = coalesce(excluded.metadata, s.metadata), updated_at = {now}
returning id, name, url, last_run_at, metadata::text, created_at, updated_at

-- name: get_source
select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources where id = :source_id

-- name: list_sources
select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources
where id > :after_source order by id limit :limit

-- name: stale_sources
-- Those that never ran first. Two arms, because the index has them at its end.
(select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources
 where last_run_at is null and :after_at::timestamptz is null and id > :after_source::text order by id limit :limit)
union all
(select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources
 where last_run_at < :ran_before::timestamptz
   and (last_run_at, id) > (coalesce(:after_at::timestamptz, '-infinity'), :after_source::text)
 order by last_run_at, id limit :limit)
limit :limit

-- name: touch_source
update windlass_sources set last_run_at = greatest(last_run_at, {now}), updated_at = {now} where id = :source_id
returning id, name, url, last_run_at, metadata::text, created_at, updated_at

-- name: delete_source
delete from windlass_sources where id = :source_id
returning id, name, url, last_run_at, metadata::text, created_at, updated_at

-- name: count_sources
select count(*) from (select id from windlass_sources limit :most) as counted
