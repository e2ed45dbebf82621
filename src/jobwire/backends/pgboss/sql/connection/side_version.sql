-- Makes the table of the side data's version, with its one row. Every role that may use the schema may read it, even one
-- that was granted the tables of an earlier release one by one.
CREATE TABLE IF NOT EXISTS {side}.version (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    version integer NOT NULL
);
GRANT SELECT ON {side}.version TO PUBLIC;
INSERT INTO {side}.version (version) VALUES ({first}) ON CONFLICT DO NOTHING;
