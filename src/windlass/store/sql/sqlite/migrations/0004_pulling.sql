-- When a group of pulled jobs last had its turn (PICK_ORDER fair); jobs of other lanes are not in here and cost nothing.
create index windlass_jobs_turns on windlass_jobs (coalesce(correlation_id, subject, ''), finished_at)
    where lane = 'pull' and finished_at is not null;

-- Signed requests that were taken, for as long as their timestamp would pass: no process takes one again.
create table windlass_signatures (
    digest text primary key,
    expires_at integer not null
) strict;
create index windlass_signatures_expiry on windlass_signatures (expires_at);
