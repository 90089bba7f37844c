-- What crawls have found. An address may be longer than an index takes, so it is known by its digest.
create table windlass_pages (
    id bigint generated always as identity primary key,
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
    fetched_at timestamptz not null,
    changed_at timestamptz not null,
    created_at timestamptz not null,
    -- The server's own parser knows other words than SQLite's.
    search tsvector generated always as (array_to_tsvector(string_to_array(words, ' '))) stored,
    constraint windlass_pages_source check (length(source_id) between 1 and 255),
    constraint windlass_pages_url check (length(url) between 1 and 2048)
);
create unique index windlass_pages_keys on windlass_pages (source_id, key);
create index windlass_pages_sources on windlass_pages (source_id, id);
create index windlass_pages_search on windlass_pages using gin (search);

-- Where a crawl goes and has been; it ends with the crawl. No more rows for a job than pages its crawl may ask for.
create table windlass_frontier (
    job_id bigint not null,
    number integer not null,
    key text not null,
    url text not null,
    depth integer not null,
    is_open boolean not null,
    primary key (job_id, number)
);
create unique index windlass_frontier_keys on windlass_frontier (job_id, key);
create index windlass_frontier_open on windlass_frontier (job_id, number) where is_open;

-- A crawl that was given up leaves its frontier; it goes with the job.
create function windlass_forget_frontier() returns trigger language plpgsql as $$
begin
    delete from windlass_frontier where job_id = old.id;
    return null;
end
$$;
create trigger windlass_jobs_frontier after delete on windlass_jobs
    for each row when (old.task = 'crawl') execute function windlass_forget_frontier();
