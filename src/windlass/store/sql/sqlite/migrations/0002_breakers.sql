-- The breaker that gates a task's claims; what it opens for and for how long is said by the code that records.
alter table windlass_tasks add column breaker text;
