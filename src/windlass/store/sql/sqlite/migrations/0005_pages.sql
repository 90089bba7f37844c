-- What crawls have found. An address may be longer than an index takes, so it is known by its digest.
create table windlass_pages (
    id integer primary key autoincrement,
    source_id text not null,
    key text not null,
    url text not null,
    title text not null,
    text text not null,
    -- The words of title and text as both databases look them up: each once, folded, between spaces.
    words text not null,
    links text not null,
    etag text,
    last_modified text,
    digest text not null,
    status integer not null,
    fetched_at integer not null,
    changed_at integer not null,
    created_at integer not null,
    constraint windlass_pages_source check (length(source_id) between 1 and 255),
    constraint windlass_pages_url check (length(url) between 1 and 2048)
) strict;
create unique index windlass_pages_keys on windlass_pages (source_id, key);
create index windlass_pages_sources on windlass_pages (source_id, id);

-- The words are folded already, and nothing asks where in the text they stand.
create virtual table windlass_pages_words using fts5(
    words, content = 'windlass_pages', content_rowid = 'id', tokenize = 'ascii', detail = 'none', columnsize = 0
);

create trigger windlass_pages_added after insert on windlass_pages
begin
    insert into windlass_pages_words (rowid, words) values (new.id, new.words);
end;

create trigger windlass_pages_deleted after delete on windlass_pages
begin
    insert into windlass_pages_words (windlass_pages_words, rowid, words) values ('delete', old.id, old.words);
end;

create trigger windlass_pages_changed after update of words on windlass_pages
begin
    insert into windlass_pages_words (windlass_pages_words, rowid, words) values ('delete', old.id, old.words);
    insert into windlass_pages_words (rowid, words) values (new.id, new.words);
end;

-- Where a crawl goes and has been; it ends with the crawl. No more rows for a job than pages its crawl may ask for.
create table windlass_frontier (
    job_id integer not null,
    number integer not null,
    key text not null,
    url text not null,
    depth integer not null,
    is_open integer not null,
    primary key (job_id, number),
    constraint windlass_frontier_open check (is_open in (0, 1))
) strict, without rowid;
create unique index windlass_frontier_keys on windlass_frontier (job_id, key);
create index windlass_frontier_open on windlass_frontier (job_id, number) where is_open;

-- A crawl that was given up leaves its frontier; it goes with the job.
create trigger windlass_jobs_frontier after delete on windlass_jobs when old.task = 'crawl'
begin
    delete from windlass_frontier where job_id = old.id;
end;
