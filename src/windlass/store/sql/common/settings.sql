-- name: set_setting
insert into windlass_settings (name, value, updated_by, updated_at) values (:name, :value, :principal::text, {now})
on conflict (name) do update set value = excluded.value, updated_by = excluded.updated_by, updated_at = excluded.updated_at
returning name, value, updated_by, updated_at

-- name: unset_setting
delete from windlass_settings where name = :name returning name, value, updated_by, updated_at

-- name: list_settings
select name, value, updated_by, updated_at from windlass_settings order by name

-- name: list_schema
select version, checksum from windlass_schema order by version
