//! Answers /hello, /burn, /sleep and /mb with actix-web: server BIND PORT.

use std::io;

use actix_web::{get, http::header::ContentType, web::Bytes, App, HttpResponse, HttpServer, Responder};

#[path = "../../../work/work.rs"]
mod work;

#[get("/hello")]
async fn hello() -> impl Responder {
    "Hello, World!"
}

#[get("/burn")]
async fn burn() -> impl Responder {
    work::burn().await;
    "burned"
}

#[get("/sleep")]
async fn sleep() -> impl Responder {
    work::sleep().await;
    "slept"
}

#[get("/mb")]
async fn megabyte() -> impl Responder {
    let body = Bytes::from_static(&work::MEGABYTE);
    HttpResponse::Ok().content_type(ContentType::plaintext()).body(body)
}

#[actix_web::main]
async fn main() -> io::Result<()> {
    let app = || App::new().service(hello).service(burn).service(sleep).service(megabyte);
    HttpServer::new(app).workers(1).bind(work::address())?.run().await
}
