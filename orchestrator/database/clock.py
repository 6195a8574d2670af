"""The clock of the database, which all processes share."""

from datetime import datetime

from django.db import connection


def read_database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
