-- Lengths are those of UTF-16: a character beyond the basic plane counts twice.
SELECT count(*) FILTER (WHERE coalesce(c.category, '') = '') AS without_category,
    coalesce(max(
        %(usernames)s * char_length(c.username)
        + %(categories)s * (char_length(coalesce(c.category, ''))
            + char_length(regexp_replace(coalesce(c.category, ''), '[^\U00010000-\U0010FFFF]', '', 'g')))), 0) AS longest
FROM {schema}.batch_channels b JOIN {schema}.channels c ON c.id = b.channel_id
WHERE b.batch_id = %(batch_id)s AND c.is_active
