-- A collection is read in the order of its items, page by page.
create index windlass_items_collections on windlass_items (collection, id);
