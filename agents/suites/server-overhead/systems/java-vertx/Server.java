import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;

/** Answers /hello, /burn, /sleep and /mb with Vert.x, whose server is Netty: Server BIND PORT. */
final class Server {
    private static final long NS_PER_MS = 1_000_000;
    private static final Vertx VERTX = Vertx.vertx(new VertxOptions().setEventLoopPoolSize(1));

    public static void main(String[] words) {
        HttpServerOptions options = new HttpServerOptions().setTcpNoDelay(true);
        VERTX.createHttpServer(options)
                .requestHandler(Server::answer)
                .listen(Integer.parseInt(words[1]), words[0])
                .onFailure(Server::giveUp);
    }

    private static void giveUp(Throwable problem) {
        System.err.println(problem);
        System.exit(1);
    }

    private static void answer(HttpServerRequest request) {
        HttpServerResponse response = request.response().putHeader("Content-Type", "text/plain");
        switch (request.path()) {
            case "/hello" -> response.end("Hello, World!");
            case "/burn" -> burn(response, 0);
            case "/sleep" -> sleep(response, System.nanoTime(), 1);
            case "/mb" -> response.end(Buffer.buffer(Work.MEGABYTE));
            default -> response.setStatusCode(404).end("not here");
        }
    }

    private static void burn(HttpServerResponse response, int done) {
        if (done == Work.STEPS) {
            response.end("burned");
            return;
        }
        Work.burnStep();
        VERTX.runOnContext(nothing -> burn(response, done + 1));
    }

    /** A timer of Vert.x takes whole milliseconds: steps that it has passed are not slept for. */
    private static void sleep(HttpServerResponse response, long start, int step) {
        int next = step;
        while (next <= Work.STEPS && Work.left(start, next) == 0) {
            next++;
        }
        if (next > Work.STEPS) {
            response.end("slept");
            return;
        }
        int waited = next;
        long delay = Math.max(1, Work.left(start, next) / NS_PER_MS);
        VERTX.setTimer(delay, id -> sleep(response, start, waited));
    }
}
