//! What the server says.

pub fn build(name: &str) -> String {
    format!("Hello, {name}!")
}
