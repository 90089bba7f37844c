-- name: list_schema
select version, checksum from windlass_schema order by version
