-- The same counts of runs by cheaper conditions: a bucket is found by comparing numbers, in a tree over the bounds of
-- windlass.core.histogram, where it was made out of a number's digits for every row.
drop trigger windlass_executions_counted;
create trigger windlass_executions_counted after insert on windlass_executions begin
    insert into windlass_run_deltas (minute, task, lane, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms)
    select new.finished_at - new.finished_at % 60000000, j.task, j.lane, new.status, coalesce(new.reason, ''),
        case when new.wait_ms < 10000 then case when new.wait_ms < 100 then case when new.wait_ms < 10 then case when
            new.wait_ms < 4 then case when new.wait_ms < 2 then case when new.wait_ms < 2 then case when new.wait_ms < 1 then
            0 else 1 end else 2 end else case when new.wait_ms < 3 then case when new.wait_ms < 2 then 3 else 4 end else 5 end
            end else case when new.wait_ms < 7 then case when new.wait_ms < 5 then case when new.wait_ms < 4 then 6 else 7 end
            else 8 end else case when new.wait_ms < 8 then 9 else 10 end end end else case when new.wait_ms < 32 then case
            when new.wait_ms < 20 then case when new.wait_ms < 16 then case when new.wait_ms < 13 then 11 else 12 end else 13
            end else case when new.wait_ms < 25 then 14 else 15 end end else case when new.wait_ms < 63 then case when
            new.wait_ms < 50 then case when new.wait_ms < 40 then 16 else 17 end else 18 end else case when new.wait_ms < 80
            then 19 else 20 end end end end else case when new.wait_ms < 1000 then case when new.wait_ms < 315 then case when
            new.wait_ms < 200 then case when new.wait_ms < 160 then case when new.wait_ms < 125 then 21 else 22 end else 23
            end else case when new.wait_ms < 250 then 24 else 25 end end else case when new.wait_ms < 630 then case when
            new.wait_ms < 500 then case when new.wait_ms < 400 then 26 else 27 end else 28 end else case when new.wait_ms <
            800 then 29 else 30 end end end else case when new.wait_ms < 3150 then case when new.wait_ms < 2000 then case when
            new.wait_ms < 1600 then case when new.wait_ms < 1250 then 31 else 32 end else 33 end else case when new.wait_ms <
            2500 then 34 else 35 end end else case when new.wait_ms < 6300 then case when new.wait_ms < 5000 then case when
            new.wait_ms < 4000 then 36 else 37 end else 38 end else case when new.wait_ms < 8000 then 39 else 40 end end end
            end end else case when new.wait_ms < 1250000 then case when new.wait_ms < 125000 then case when new.wait_ms <
            40000 then case when new.wait_ms < 20000 then case when new.wait_ms < 16000 then case when new.wait_ms < 12500
            then 41 else 42 end else 43 end else case when new.wait_ms < 31500 then case when new.wait_ms < 25000 then 44 else
            45 end else 46 end end else case when new.wait_ms < 80000 then case when new.wait_ms < 63000 then case when
            new.wait_ms < 50000 then 47 else 48 end else 49 end else case when new.wait_ms < 100000 then 50 else 51 end end
            end else case when new.wait_ms < 400000 then case when new.wait_ms < 250000 then case when new.wait_ms < 200000
            then case when new.wait_ms < 160000 then 52 else 53 end else 54 end else case when new.wait_ms < 315000 then 55
            else 56 end end else case when new.wait_ms < 800000 then case when new.wait_ms < 630000 then case when new.wait_ms
            < 500000 then 57 else 58 end else 59 end else case when new.wait_ms < 1000000 then 60 else 61 end end end end else
            case when new.wait_ms < 12500000 then case when new.wait_ms < 4000000 then case when new.wait_ms < 2500000 then
            case when new.wait_ms < 2000000 then case when new.wait_ms < 1600000 then 62 else 63 end else 64 end else case
            when new.wait_ms < 3150000 then 65 else 66 end end else case when new.wait_ms < 8000000 then case when new.wait_ms
            < 6300000 then case when new.wait_ms < 5000000 then 67 else 68 end else 69 end else case when new.wait_ms <
            10000000 then 70 else 71 end end end else case when new.wait_ms < 40000000 then case when new.wait_ms < 25000000
            then case when new.wait_ms < 20000000 then case when new.wait_ms < 16000000 then 72 else 73 end else 74 end else
            case when new.wait_ms < 31500000 then 75 else 76 end end else case when new.wait_ms < 80000000 then case when
            new.wait_ms < 63000000 then case when new.wait_ms < 50000000 then 77 else 78 end else 79 end else case when
            new.wait_ms < 100000000 then 80 else 81 end end end end end end,
        case when new.finished_at - new.started_at < 10000000 then case when new.finished_at - new.started_at < 100000 then
            case when new.finished_at - new.started_at < 10000 then case when new.finished_at - new.started_at < 4000 then
            case when new.finished_at - new.started_at < 2000 then case when new.finished_at - new.started_at < 2000 then case
            when new.finished_at - new.started_at < 1000 then 0 else 1 end else 2 end else case when new.finished_at -
            new.started_at < 3000 then case when new.finished_at - new.started_at < 2000 then 3 else 4 end else 5 end end else
            case when new.finished_at - new.started_at < 7000 then case when new.finished_at - new.started_at < 5000 then case
            when new.finished_at - new.started_at < 4000 then 6 else 7 end else 8 end else case when new.finished_at -
            new.started_at < 8000 then 9 else 10 end end end else case when new.finished_at - new.started_at < 32000 then case
            when new.finished_at - new.started_at < 20000 then case when new.finished_at - new.started_at < 16000 then case
            when new.finished_at - new.started_at < 13000 then 11 else 12 end else 13 end else case when new.finished_at -
            new.started_at < 25000 then 14 else 15 end end else case when new.finished_at - new.started_at < 63000 then case
            when new.finished_at - new.started_at < 50000 then case when new.finished_at - new.started_at < 40000 then 16 else
            17 end else 18 end else case when new.finished_at - new.started_at < 80000 then 19 else 20 end end end end else
            case when new.finished_at - new.started_at < 1000000 then case when new.finished_at - new.started_at < 315000 then
            case when new.finished_at - new.started_at < 200000 then case when new.finished_at - new.started_at < 160000 then
            case when new.finished_at - new.started_at < 125000 then 21 else 22 end else 23 end else case when new.finished_at
            - new.started_at < 250000 then 24 else 25 end end else case when new.finished_at - new.started_at < 630000 then
            case when new.finished_at - new.started_at < 500000 then case when new.finished_at - new.started_at < 400000 then
            26 else 27 end else 28 end else case when new.finished_at - new.started_at < 800000 then 29 else 30 end end end
            else case when new.finished_at - new.started_at < 3150000 then case when new.finished_at - new.started_at <
            2000000 then case when new.finished_at - new.started_at < 1600000 then case when new.finished_at - new.started_at
            < 1250000 then 31 else 32 end else 33 end else case when new.finished_at - new.started_at < 2500000 then 34 else
            35 end end else case when new.finished_at - new.started_at < 6300000 then case when new.finished_at -
            new.started_at < 5000000 then case when new.finished_at - new.started_at < 4000000 then 36 else 37 end else 38 end
            else case when new.finished_at - new.started_at < 8000000 then 39 else 40 end end end end end else case when
            new.finished_at - new.started_at < 1250000000 then case when new.finished_at - new.started_at < 125000000 then
            case when new.finished_at - new.started_at < 40000000 then case when new.finished_at - new.started_at < 20000000
            then case when new.finished_at - new.started_at < 16000000 then case when new.finished_at - new.started_at <
            12500000 then 41 else 42 end else 43 end else case when new.finished_at - new.started_at < 31500000 then case when
            new.finished_at - new.started_at < 25000000 then 44 else 45 end else 46 end end else case when new.finished_at -
            new.started_at < 80000000 then case when new.finished_at - new.started_at < 63000000 then case when
            new.finished_at - new.started_at < 50000000 then 47 else 48 end else 49 end else case when new.finished_at -
            new.started_at < 100000000 then 50 else 51 end end end else case when new.finished_at - new.started_at < 400000000
            then case when new.finished_at - new.started_at < 250000000 then case when new.finished_at - new.started_at <
            200000000 then case when new.finished_at - new.started_at < 160000000 then 52 else 53 end else 54 end else case
            when new.finished_at - new.started_at < 315000000 then 55 else 56 end end else case when new.finished_at -
            new.started_at < 800000000 then case when new.finished_at - new.started_at < 630000000 then case when
            new.finished_at - new.started_at < 500000000 then 57 else 58 end else 59 end else case when new.finished_at -
            new.started_at < 1000000000 then 60 else 61 end end end end else case when new.finished_at - new.started_at <
            12500000000 then case when new.finished_at - new.started_at < 4000000000 then case when new.finished_at -
            new.started_at < 2500000000 then case when new.finished_at - new.started_at < 2000000000 then case when
            new.finished_at - new.started_at < 1600000000 then 62 else 63 end else 64 end else case when new.finished_at -
            new.started_at < 3150000000 then 65 else 66 end end else case when new.finished_at - new.started_at < 8000000000
            then case when new.finished_at - new.started_at < 6300000000 then case when new.finished_at - new.started_at <
            5000000000 then 67 else 68 end else 69 end else case when new.finished_at - new.started_at < 10000000000 then 70
            else 71 end end end else case when new.finished_at - new.started_at < 40000000000 then case when new.finished_at -
            new.started_at < 25000000000 then case when new.finished_at - new.started_at < 20000000000 then case when
            new.finished_at - new.started_at < 16000000000 then 72 else 73 end else 74 end else case when new.finished_at -
            new.started_at < 31500000000 then 75 else 76 end end else case when new.finished_at - new.started_at < 80000000000
            then case when new.finished_at - new.started_at < 63000000000 then case when new.finished_at - new.started_at <
            50000000000 then 77 else 78 end else 79 end else case when new.finished_at - new.started_at < 100000000000 then 80
            else 81 end end end end end end,
        1, new.wait_ms, (new.finished_at - new.started_at) / 1000
    from windlass_jobs j where j.id = new.job_id
    on conflict do update set runs = runs + 1, wait_ms = wait_ms + excluded.wait_ms,
        duration_ms = duration_ms + excluded.duration_ms;
end;

-- The rule let a key without a scope pass, as a comparison with null is null. Only the text of the table changes.
pragma writable_schema = on;
update sqlite_schema set sql = replace(sql,
    '(unique_scope = ''pending'' or unique_scope = ''active'' or unique_scope = ''forever'') and unique_key is not null'
        || ' or unique_scope is null and unique_key is null',
    '(unique_scope is null) = (unique_key is null)'
        || ' and (unique_scope = ''pending'' or unique_scope = ''active'' or unique_scope = ''forever'')')
where type = 'table' and name = 'windlass_jobs';
-- Any change of the schema makes all connections read it again; this one is told to.
create table windlass_new_checks (one integer);
drop table windlass_new_checks;
pragma writable_schema = reset;
