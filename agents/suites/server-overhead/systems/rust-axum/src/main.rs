//! Answers /hello, /burn, /sleep and /mb with axum: server BIND PORT.

use std::io;

use axum::{body::Bytes, http::header::CONTENT_TYPE, response::IntoResponse, routing::get, Router};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

#[path = "../../../work/work.rs"]
mod work;

async fn burn() -> &'static str {
    work::burn().await;
    "burned"
}

async fn sleep() -> &'static str {
    work::sleep().await;
    "slept"
}

async fn megabyte() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain")], Bytes::from_static(&work::MEGABYTE))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let router = Router::new()
        .route("/hello", get(|| async { "Hello, World!" }))
        .route("/burn", get(burn))
        .route("/sleep", get(sleep))
        .route("/mb", get(megabyte));
    let listener = TcpListener::bind(work::address()).await?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}
