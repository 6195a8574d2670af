-- Two roles: pitwall_owner owns the tables and runs `manage.py migrate` and `restore`. pitwall runs everything
-- else, and can neither change the schema nor disable a trigger. Run this file with psql 14 or newer, as a
-- superuser, in Pitwall's database, empty or not. It can be run again, for example with other passwords:
--   PITWALL_OWNER_PASSWORD=… PITWALL_DATABASE_PASSWORD=… psql --dbname pitwall --file roles.sql
-- The image of PostgreSQL runs it when it initialises a new volume.
\set ON_ERROR_STOP on
\getenv owner_password PITWALL_OWNER_PASSWORD
\getenv password PITWALL_DATABASE_PASSWORD

SELECT format('CREATE ROLE %I', name)
FROM (VALUES ('pitwall_owner'), ('pitwall')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec
ALTER ROLE pitwall_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS
    PASSWORD :'owner_password';
ALTER ROLE pitwall LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS
    PASSWORD :'password';

REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
-- Bulk imports fill temporary tables.
GRANT CONNECT, TEMPORARY ON DATABASE :"DBNAME" TO pitwall_owner, pitwall;
ALTER SCHEMA public OWNER TO pitwall_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO pitwall;

-- For each table that a migration creates. Not TRUNCATE, REFERENCES or TRIGGER.
ALTER DEFAULT PRIVILEGES FOR ROLE pitwall_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO pitwall;
ALTER DEFAULT PRIVILEGES FOR ROLE pitwall_owner IN SCHEMA public
    GRANT USAGE, SELECT ON SEQUENCES TO pitwall;

-- Objects that an older version created as another role.
SELECT format('ALTER DATABASE %I OWNER TO CURRENT_USER', datname) FROM pg_database
WHERE datname = current_database() AND datdba = 'pitwall'::regrole
\gexec
SELECT format('ALTER TABLE %s OWNER TO pitwall_owner', oid::regclass) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
    AND relowner <> 'pitwall_owner'::regrole
\gexec
SELECT format('ALTER ROUTINE %s OWNER TO pitwall_owner', oid::regprocedure) FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND proowner <> 'pitwall_owner'::regrole
\gexec
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO pitwall;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO pitwall;
