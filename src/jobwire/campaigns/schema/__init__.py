"""The tables: ordered migrations, and the adoption of tables that another program made."""
