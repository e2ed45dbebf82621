-- The jobs of a range of ids, with their campaign and channel. Rows that refer to nothing exist in adopted tables.
SELECT
    j.id,
    j.campaign_id,
    m.name AS campaign,
    m.mode,
    m.delivery_rate,
    j.channel_id,
    c.username AS channel,
    j.status,
    j.attempts,
    substring(j.error_message FROM {reason}) AS reason,
    j.error_message AS error,
    {created_at} AS created_at,
    {started_at} AS started_at,
    {sent_at} AS sent_at,
    {failed_at} AS failed_at,
    j.duplicate_of,
    {malformed} AS malformed
FROM {schema}.jobs j
LEFT JOIN {schema}.campaigns m ON m.id = j.campaign_id
LEFT JOIN {schema}.channels c ON c.id = j.channel_id
WHERE {condition}
