-- Run by whoever connects first, before the numbered migrations; every statement may be repeated.
-- broom_owner owns everything, broom_writer is what broomd works as, broom_reader sees schema broom_api
-- only; it has no password, so that a site decides who may log in as it, or grants it to its own roles.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['broom_owner', 'broom_writer', 'broom_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I %s', name, CASE name WHEN 'broom_reader' THEN 'LOGIN' ELSE 'NOLOGIN' END);
        END IF;
        IF NOT pg_has_role(current_user, name, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO %I', name, current_user);
        END IF;
    END LOOP;
    IF NOT has_database_privilege('broom_owner', current_database(), 'CREATE') THEN
        EXECUTE format('GRANT CREATE ON DATABASE %I TO broom_owner', current_database());
    END IF;
END
$$;
SET ROLE broom_owner;
CREATE SCHEMA IF NOT EXISTS broom;
CREATE TABLE IF NOT EXISTS broom.schema_version (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT USAGE ON SCHEMA broom TO broom_writer, broom_reader;
GRANT SELECT ON broom.schema_version TO broom_writer, broom_reader;
RESET ROLE;
