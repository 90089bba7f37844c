-- A worker may be told to claim nothing more, and records with its heartbeat what its process takes of the machine.
alter table windlass_workers add column paused_at integer;
alter table windlass_workers add column paused_by text;
alter table windlass_workers add column cpu_percent integer;
alter table windlass_workers add column memory_mb integer;
