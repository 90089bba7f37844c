-- The breaker that gates a task's claims; what it opens for and for how long is said by the code that records.
alter table windlass_tasks add column breaker text;

-- A collection is read in the order of its items, page by page.
create index windlass_items_collections on windlass_items (collection, id);
