//! A server of the standard library, with a thread for each connection.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::{env, thread};

fn main() -> Result<()> {
    let address = env::args().nth(1).expect("the address as the argument");
    for stream in TcpListener::bind(address)?.incoming() {
        let stream = stream?;
        thread::spawn(move || serve(stream));
    }
    Ok(())
}

fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        // An empty line ends the request.
        if line == "\r\n" {
            let body = greeting::build("World");
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes())?;
        }
        line.clear();
    }
    Ok(())
}
