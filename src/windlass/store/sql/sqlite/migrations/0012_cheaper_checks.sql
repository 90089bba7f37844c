-- Inside a CHECK, SQLite builds the list of an `in (…)` anew for every row. The same rules, spelled as comparisons: only the text
-- of the tables changes, and nothing that is stored, so it is written in place.
pragma writable_schema = on;
update sqlite_schema set sql =
    replace(replace(replace(replace(replace(replace(replace(replace(replace(sql,
        '(state in (''scheduled'', ''pending'', ''running'', ''paused'', ''completed'', ''failed'', ''cancelled''))',
        '(state = ''completed'' or state = ''pending'' or state = ''running'' or state = ''scheduled'' or state = ''paused'''
            || ' or state = ''failed'' or state = ''cancelled'')'),
        '(wait_reason in (''new'', ''operator'', ''delay'', ''retry'', ''lost'', ''snooze'', ''released'', ''recurrence''))',
        '(wait_reason = ''new'' or wait_reason = ''delay'' or wait_reason = ''retry'' or wait_reason = ''recurrence'''
            || ' or wait_reason = ''operator'' or wait_reason = ''lost'' or wait_reason = ''snooze'' or wait_reason = ''released'')'),
        '(state in (''scheduled'', ''pending'', ''paused''))',
        '(state = ''pending'' or state = ''scheduled'' or state = ''paused'')'),
        '(state in (''completed'', ''failed'', ''cancelled''))',
        '(state = ''completed'' or state = ''failed'' or state = ''cancelled'')'),
        'else state in (''running'', ''cancelled'') and',
        'else (state = ''running'' or state = ''cancelled'') and'),
        '(spawn in (0, 1) and held in (0, 1) and stop_requested in (0, 1))',
        '((spawn = 0 or spawn = 1) and (held = 0 or held = 1) and (stop_requested = 0 or stop_requested = 1))'),
        'not held or state in (''scheduled'', ''pending'', ''running'')',
        'not held or state = ''scheduled'' or state = ''pending'' or state = ''running'''),
        'state not in (''pending'', ''running'')',
        'state <> ''pending'' and state <> ''running'''),
        'unique_scope in (''pending'', ''active'', ''forever'') and',
        '(unique_scope = ''pending'' or unique_scope = ''active'' or unique_scope = ''forever'') and')
where type = 'table' and name = 'windlass_jobs';
update sqlite_schema set sql =
    replace(replace(replace(sql,
        '(status in (''completed'', ''failed'', ''cancelled''))',
        '(status = ''completed'' or status = ''failed'' or status = ''cancelled'')'),
        'reason in (''error'', ''timed_out'', ''lease_expired'', ''worker_crashed'')',
        '(reason = ''error'' or reason = ''timed_out'' or reason = ''lease_expired'' or reason = ''worker_crashed'')'),
        'reason in (''released'', ''snoozed'', ''cancelled'', ''stopped'', ''superseded'')',
        '(reason = ''released'' or reason = ''snoozed'' or reason = ''cancelled'' or reason = ''stopped'''
            || ' or reason = ''superseded'')')
where type = 'table' and name = 'windlass_executions';
-- Any change of the schema makes all connections read it again; this one is told to.
create table windlass_new_checks (one integer);
drop table windlass_new_checks;
pragma writable_schema = reset;
