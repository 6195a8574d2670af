"""The four answers with Flask, as a WSGI application; from Python 2.7 on."""

import work
from flask import Flask, Response

app = Flask(__name__)


def add(path, make):
    def answer():
        return Response(make(), mimetype="text/plain")

    app.add_url_rule(path, endpoint=path.strip("/"), view_func=answer)


for path, make in work.ANSWERS.items():
    add(path, make)
