-- name: add_audit
insert into windlass_audit (at, principal, action, target, outcome, details, request_id)
values ({now}, :principal, :action, :target, :outcome, :details, :request_id)
returning id

-- name: list_audit
select {audit_columns} from windlass_audit
where id < :before and (:principal is null or principal = :principal)
  and (:action is null or action = :action) and (:target is null or target = :target) and (:since is null or at >= :since)
order by id desc limit :limit

-- name: count_audit
select count(*) from (
    select id from windlass_audit
    where (:principal is null or principal = :principal)
      and (:action is null or action = :action) and (:target is null or target = :target) and (:since is null or at >= :since)
    limit :most
) as counted

-- name: lock_chain
-- The transaction has the file to itself.
select ''

-- name: last_link
select place, chain from windlass_audit where place is not null order by place desc limit 1

-- name: list_unchained
select {audit_columns} from windlass_audit where chain is null order by id limit :limit

-- name: add_links
update windlass_audit set chain = s.value ->> 'chain', place = s.value ->> 'place'
from json_each(:links) as s where windlass_audit.id = s.value ->> 'id' and windlass_audit.chain is null
returning id

-- name: list_chained
select {audit_columns} from windlass_audit where place > :after order by place limit :limit

-- name: list_old_refusals
-- Never the last link: the next line is chained to it.
select {audit_columns} from windlass_audit
where action = 'refuse' and place is not null and at < {now} - :keep_for
  and place < (select max(m.place) from windlass_audit m where m.place is not null)
order by place limit :limit

-- name: delete_refusals
delete from windlass_audit where id in (select value from json_each(:ids)) and action = 'refuse' and place is not null
returning id

-- name: list_prunings
select {audit_columns} from windlass_audit where action = 'prune refusals' and id > :after order by id limit :limit
