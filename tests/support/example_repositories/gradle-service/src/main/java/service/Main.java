package service;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** A server of the JDK. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws IOException {
        InetSocketAddress address =
            new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        HttpServer server = HttpServer.create(address, 0);
        long heap = Runtime.getRuntime().maxMemory() >> 20;
        byte[] body = ("Hello from " + heap + " MiB").getBytes();
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
