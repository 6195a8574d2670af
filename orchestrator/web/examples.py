"""What a new benchmark begins with."""

from textwrap import dedent

from django.conf import settings
from django.urls import reverse

DEFINITION = dedent(
    """\
    version: 1
    title: Hello, world
    subject:
      build: []
      start: ["{python}", "server.py", "--bind", "{bind}", "--port", "{port}"]
      ready: {path: /, status: 200, timeout_s: 10}
    load:
      tool: oha
      path: /
      connections: "{connections}"
      duration_s: 30
      warmup_s: 10
    matrix:
      connections: [10, 50]
    rounds: 7
    """
)


def example() -> str:
    """A definition, with the line that makes editors check it against our schema."""
    schema = settings.BASE_URL + reverse("definition-schema")
    return f"# yaml-language-server: $schema={schema}\n{DEFINITION}"
