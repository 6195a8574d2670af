"""Import this before anything of Django: the settings come from the environment."""

import django

django.setup()
