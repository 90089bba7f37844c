-- name: add_audit
insert into windlass_audit (at, principal, action, target, outcome, details, request_id)
values ({now}, :principal, :action, :target, :outcome, :details, :request_id)
returning id
