import sys
from concurrent.futures import ThreadPoolExecutor

import greet_pb2
import greet_pb2_grpc
import grpc


class Greeter(greet_pb2_grpc.GreeterServicer):
    def Hello(
        self, request: greet_pb2.HelloRequest, context: grpc.ServicerContext
    ) -> greet_pb2.HelloReply:
        return greet_pb2.HelloReply(text=f"Hello, {request.name}!")


server = grpc.server(ThreadPoolExecutor(max_workers=8))
greet_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)
server.add_insecure_port(sys.argv[1])
server.start()
server.wait_for_termination()
