-- The worker that a token is for: nobody else may be called by it. Older tokens are bound to their name.
alter table windlass_tokens add column worker text;
update windlass_tokens set worker = name where role = 'worker';

-- Refusals are for strangers to make, so old ones may go once they are chained; a line of its own says which places are gone.
create index windlass_audit_refusals on windlass_audit (place) where action = 'refuse' and place is not null;
create index windlass_audit_prunings on windlass_audit (id) where action = 'prune refusals';
drop trigger windlass_audit_deleted on windlass_audit;
create trigger windlass_audit_deleted before delete on windlass_audit for each row
    when (old.action <> 'refuse' or old.chain is null) execute function windlass_audit_refuse();
