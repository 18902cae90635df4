-- Run by tests/integration/store/test_schema.c on a fresh schema. Any failed assertion is an error.
DO $$
DECLARE
    old timestamptz := date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '6 months';
    pinned timestamptz := old + interval '2 months';
    pinned_ns bigint := (extract(epoch FROM pinned + interval '3 days') * 1e9)::bigint;
    dropped text[];
    made integer;
BEGIN
    ASSERT broom.partition_make('event', old), 'a month of half a year ago';
    ASSERT NOT broom.partition_make('event', old), 'it is there';
    ASSERT NOT broom.partition_make('event', now() + interval '5 years'), 'absurdly late';
    ASSERT broom.partition_make('event', pinned);
    ASSERT broom.partition_make('rollup', old);
    ASSERT broom.partition_make('rollup', pinned + interval '3 days');
    INSERT INTO broom.event (key, at, record) VALUES ('old', old + interval '1 day', '{"time_ns": 1}'),
        ('pinned', pinned + interval '3 days', '{"time_ns": 1}'), ('absurd', now() + interval '50 years', '{"time_ns": 1}');
    INSERT INTO broom.incident (ref, number, version, record) VALUES ('INC-1', 1, 1, jsonb_build_object(
        'time_ns', pinned_ns + 3600000000000, 'job', 'j', 'kind', 'slow', 'scope', 'rank', 'status', 'closed',
        'phase', 'done', 'severity', 2, 'times', jsonb_build_object('fault_started_ns', pinned_ns)));

    dropped := broom.keep_partitions(30);
    ASSERT dropped = '{}', 'what was made today stays, however old its times are';
    UPDATE broom.partition SET made_at = now() - interval '60 days';
    dropped := broom.keep_partitions(30);
    ASSERT broom.partition_name('event', old) = ANY (dropped), 'a month that nobody needs goes';
    ASSERT NOT broom.partition_name('event', pinned) = ANY (dropped), 'a month of an incident stays';
    ASSERT broom.partition_name('rollup', broom.partition_start('rollup', pinned + interval '3 days')) = ANY (dropped),
        'rollups of a closed incident go: its raw window is kept';
    ASSERT (SELECT count(*) FROM broom.event) = 2, 'the absurd one stays in the default partition';
    SELECT count(*) INTO made FROM pg_inherits WHERE inhparent = 'broom.rollup'::regclass;
    ASSERT made >= 5, 'weeks ahead are there';
    RAISE EXCEPTION USING ERRCODE = 'P0TST', MESSAGE = 'all held; nothing of this test stays';
END
$$;
