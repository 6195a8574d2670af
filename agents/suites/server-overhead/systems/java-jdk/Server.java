import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/** Answers /hello, /burn, /sleep and /mb with the server of the JDK: Server BIND PORT. */
final class Server {
    private static final int BACKLOG = 1024;
    private static final int THREADS = 64;

    public static void main(String[] words) throws IOException {
        InetSocketAddress address = new InetSocketAddress(words[0], Integer.parseInt(words[1]));
        HttpServer server = HttpServer.create(address, BACKLOG);
        server.setExecutor(Executors.newFixedThreadPool(THREADS));
        server.createContext("/hello", answer("Hello, World!".getBytes(), () -> {}));
        server.createContext("/burn", answer("burned".getBytes(), Server::burn));
        server.createContext("/sleep", answer("slept".getBytes(), Server::sleep));
        server.createContext("/mb", answer(Work.MEGABYTE, () -> {}));
        server.start();
    }

    private static HttpHandler answer(byte[] body, Runnable first) {
        return (HttpExchange exchange) -> {
            first.run();
            exchange.getResponseHeaders().set("Content-Type", "text/plain");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        };
    }

    private static void burn() {
        for (int step = 0; step < Work.STEPS; step++) {
            Work.burnStep();
            Thread.yield();
        }
    }

    private static void sleep() {
        long start = System.nanoTime();
        for (int step = 1; step <= Work.STEPS; step++) {
            for (long left = Work.left(start, step); left > 0; left = Work.left(start, step)) {
                LockSupport.parkNanos(left);
            }
        }
    }
}
