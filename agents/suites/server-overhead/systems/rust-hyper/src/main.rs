//! Answers /hello, /burn, /sleep and /mb with hyper: server BIND PORT.

use std::{convert::Infallible, io};

use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    header::CONTENT_TYPE,
    server::conn::http1,
    service::service_fn,
    Request, Response, StatusCode,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[path = "../../../work/work.rs"]
mod work;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body): (_, &'static [u8]) = match request.uri().path() {
        "/hello" => (StatusCode::OK, b"Hello, World!"),
        "/burn" => {
            work::burn().await;
            (StatusCode::OK, b"burned")
        }
        "/sleep" => {
            work::sleep().await;
            (StatusCode::OK, b"slept")
        }
        "/mb" => (StatusCode::OK, &work::MEGABYTE),
        _ => (StatusCode::NOT_FOUND, b"not here"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, "text/plain".parse().expect("a header"));
    Ok(response)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind(work::address()).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            // A disconnected client is no error of the server.
            let _ = connection.await;
        });
    }
}
