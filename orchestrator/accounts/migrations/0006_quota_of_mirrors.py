"""How much the mirrors of a team's repositories may take; null is no limit."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

#: The default for all teams when this was added.
USUAL_MIB = 51_200


def set_usual(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Limits of a team's own were set before there was this one: no team becomes unlimited."""
    quotas = apps.get_model("accounts", "TeamQuota").objects
    quotas.filter(own=True).update(mirrors_mib=USUAL_MIB)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_parents_of_tokens")]

    operations = [
        migrations.AddField(
            model_name="teamquota",
            name="mirrors_mib",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.RunPython(set_usual, migrations.RunPython.noop),
    ]
