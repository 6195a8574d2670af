"""The four answers with Falcon, as a WSGI application."""

import falcon
import work


class Answer:
    def __init__(self, make):
        self.make = make

    def on_get(self, request, response):
        response.content_type = "text/plain"
        response.data = self.make()


app = falcon.App()
for path, make in work.ANSWERS.items():
    app.add_route(path, Answer(make))
