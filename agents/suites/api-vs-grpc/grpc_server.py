"""The gRPC side: `cities.Cities/Random`. It needs cities_pb2*.py, generated from cities.proto.

python -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. cities.proto
python grpc_server.py --port 8080 --redis redis://127.0.0.1:6379
"""

import argparse
import asyncio
import signal

import grpc
from cities import Cities
from cities_pb2 import City
from cities_pb2_grpc import CitiesServicer, add_CitiesServicer_to_server


class Answers(CitiesServicer):
    def __init__(self, cities):
        self.cities = cities

    async def Random(self, request, context):
        if not 1 <= request.num <= 9999:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "num is 1 to 9999")
        return City(**await self.cities.random_one(request.num))


async def serve(address, redis):
    cities = Cities(redis)
    await cities.load()
    server = grpc.aio.server()
    add_CitiesServicer_to_server(Answers(cities), server)
    server.add_insecure_port(address)
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await server.stop(grace=1)
    await cities.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--redis", required=True, metavar="URL")
    given = parser.parse_args()
    asyncio.run(serve(f"{given.bind}:{given.port}", given.redis))
