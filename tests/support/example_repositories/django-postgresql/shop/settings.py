import dj_database_url

ALLOWED_HOSTS = ["*"]
DATABASES = {"default": dj_database_url.config(conn_max_age=600)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
SECRET_KEY = "only for this test"
