-- Run by tests/integration/store/test_schema.c on a fresh schema. Any failed assertion is an error.
DO $$
DECLARE
    name text;
    refused boolean;
BEGIN
    -- The writer writes by broom.apply alone.
    FOREACH name IN ARRAY ARRAY['event', 'verdict', 'incident', 'timeline', 'decision', 'action', 'action_outcome',
                                'job_topology', 'rollup', 'raw_window', 'spare', 'control', 'lease', 'topology',
                                'plain_record'] LOOP
        ASSERT NOT has_table_privilege('broom_writer', 'broom.' || name, 'INSERT, UPDATE, DELETE, TRUNCATE'),
            format('broom_writer may change %s', name);
        ASSERT NOT has_table_privilege('broom_reader', 'broom.' || name, 'SELECT, INSERT, UPDATE, DELETE'),
            format('broom_reader may touch %s', name);
    END LOOP;
    ASSERT has_function_privilege('broom_writer', 'broom.apply(jsonb, bigint)', 'EXECUTE');
    ASSERT NOT has_function_privilege('broom_reader', 'broom.apply(jsonb, bigint)', 'EXECUTE');
    ASSERT NOT has_function_privilege('broom_reader', 'broom.lease_take(text, bigint, boolean)', 'EXECUTE');
    ASSERT NOT has_function_privilege('broom_writer', 'broom.partition_make(text, timestamptz)', 'EXECUTE');
    ASSERT NOT (SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = 'broom_owner');
    ASSERT NOT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
                       WHERE r.rolname IN ('broom_writer', 'broom_reader')), 'the roles are members of nothing';

    -- The reader sees every view and calls every function of broom_api.
    FOR name IN SELECT viewname FROM pg_views WHERE schemaname = 'broom_api' LOOP
        ASSERT has_table_privilege('broom_reader', 'broom_api.' || name, 'SELECT'), name;
        ASSERT obj_description(('broom_api.' || name)::regclass) IS NOT NULL, format('%s has no comment', name);
        SET LOCAL ROLE broom_reader;
        EXECUTE format('SELECT count(*) FROM (SELECT * FROM broom_api.%I LIMIT 1) one', name);
        RESET ROLE;
    END LOOP;
    ASSERT NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'broom_api'::regnamespace
                       AND NOT has_function_privilege('broom_reader', p.oid, 'EXECUTE'));
    ASSERT NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'broom'::regnamespace
                       AND p.prosecdef AND p.proconfig IS NULL), 'a definer function without a search_path';

    -- What happened stays, even for the owner.
    INSERT INTO broom.control (key, record) VALUES ('test', '{"time_ns": 1, "what": "pause"}');
    INSERT INTO broom.event (key, at, record) VALUES ('test', now(), '{"time_ns": 1, "kind": "xid"}');
    FOREACH name IN ARRAY ARRAY[
        'UPDATE broom.control SET key = ''other''', 'DELETE FROM broom.control', 'TRUNCATE broom.control',
        'UPDATE broom.event SET key = ''other''', 'DELETE FROM broom.event', 'TRUNCATE broom.event',
        'TRUNCATE broom.verdict', 'TRUNCATE broom.timeline', 'TRUNCATE broom.decision', 'TRUNCATE broom.action',
        'TRUNCATE broom.action_outcome', 'TRUNCATE broom.incident', 'TRUNCATE broom.event_other'] LOOP
        refused := false;
        BEGIN
            SET LOCAL ROLE broom_owner;
            EXECUTE name;
        EXCEPTION WHEN insufficient_privilege THEN
            refused := true;
        END;
        RESET ROLE;
        ASSERT refused, name;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'P0TST', MESSAGE = 'all held; nothing of this test stays';
END
$$;
