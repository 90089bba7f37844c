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

-- name: lock_chain
-- One chainer at a time, and none that writers wait for; it ends with the transaction, so poolers may be between.
select pg_advisory_xact_lock(7301946200282)::text

-- name: last_link
select place, chain from windlass_audit where place is not null order by place desc limit 1

-- name: list_unchained
select {audit_columns} from windlass_audit where chain is null order by id limit :limit

-- name: add_links
update windlass_audit a set chain = s.chain, place = s.place
from json_to_recordset(:links::json) as s (id bigint, chain text, place bigint)
where a.id = s.id and a.chain is null
returning a.id

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
