-- Returns standbys with the age of what they have not applied, then replication slots that no standby uses.
SELECT 'standby', coalesce(nullif(r.application_name, ''), r.client_addr::text, '?'),
    coalesce(extract(epoch FROM r.replay_lag), 0)::float8, r.state::text
FROM pg_catalog.pg_stat_replication r
UNION ALL
SELECT 'slot', s.slot_name::text, pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::float8, s.slot_type::text
FROM pg_catalog.pg_replication_slots s WHERE NOT s.active AND s.restart_lsn IS NOT NULL
