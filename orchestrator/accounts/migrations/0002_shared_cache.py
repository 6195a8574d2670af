from django.db import migrations

# What Django's cache in the database wants of its table (manage.py createcachetable).
FORWARDS = """
CREATE TABLE accounts_shared_cache (
    cache_key varchar(255) PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX accounts_shared_cache_expires ON accounts_shared_cache (expires);
"""


class Migration(migrations.Migration):

    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunSQL(FORWARDS, "DROP TABLE accounts_shared_cache")]
