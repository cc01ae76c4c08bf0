//! HTTP/1.1 as far as this server speaks it: one request a connection, bodies of known lengths, answers in JSON.

use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a request line with its headers, and headers.
const MOST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// Bytes of a body.
pub const MOST_BODY: usize = 16 << 20;
/// How long a request may take to come, and an answer to go.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long, and how many bytes of, a request that was refused is still read, so that whoever sends it sees the answer.
const REST: (Duration, usize) = (Duration::from_secs(1), 64 << 20);

/// A request.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// Without what follows a `?`.
    pub path: String,
    pub body: Vec<u8>,
    /// The host that was asked, without its port.
    pub host: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    /// Methods that a path has, where another was asked for.
    pub allow: Option<&'static str>,
}

impl Answer {
    pub fn ok(body: Value) -> Self {
        Self { status: 200, body, allow: None }
    }

    /// Creates a refusal that says what is wrong and what to do.
    pub fn refusal(status: u16, text: impl Into<String>) -> Self {
        Self { status, body: json!({ "error": text.into() }), allow: None }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

/// What headers say of the body, and of who is asked.
#[derive(Clone, Debug, Default)]
struct Body {
    host: Option<String>,
    length: Option<usize>,
    /// Whether the sender waits for a word before it sends the body.
    waits: bool,
}

/// A head that has come as a whole.
struct Head {
    method: String,
    path: String,
    /// Where the body begins.
    end: usize,
    body: Body,
}

/// Reads the head of a request, if it is whole.
fn head(bytes: &[u8]) -> Result<Option<Head>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let too_large = || Answer::refusal(431, "the headers of the request are too large: send fewer");
    let end = match request.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) if bytes.len() > MOST_HEAD => return Err(too_large()),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(too_large()),
        Err(error) => {
            return Err(Answer::refusal(400, format!("this is not a request of HTTP: {error}")));
        }
    };
    let mut body = Body::default();
    for header in request.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        let value = value.trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
                // more digits than a number has are too large all the same
                let own = digits.then(|| value.parse::<usize>().unwrap_or(usize::MAX));
                if own.is_none() || body.length.is_some_and(|other| Some(other) != own) {
                    let text = "the header `Content-Length` is not a length: give the number of bytes of the body";
                    return Err(Answer::refusal(400, text));
                }
                body.length = own;
            }
            "transfer-encoding" => {
                let text =
                    "bodies in pieces (`Transfer-Encoding`) are not read: send `Content-Length`";
                return Err(Answer::refusal(411, text));
            }
            "host" => {
                let name = value.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
                body.host = Some(name.map_or(value, |(name, _)| name).to_ascii_lowercase());
            }
            "expect" => body.waits = value.eq_ignore_ascii_case("100-continue"),
            _ => {}
        }
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let method = request.method.unwrap_or_default().to_owned();
    Ok(Some(Head { method, path, end, body }))
}

/// Reads more bytes; none at the end.
fn more(stream: &mut TcpStream, until: Instant, bytes: &mut Vec<u8>) -> Result<bool, Answer> {
    let mut piece = [0; 16 << 10];
    let late = || Answer::refusal(408, "the request took too long to come");
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
        return Err(late());
    }
    match stream.read(&mut piece) {
        Ok(count) => {
            bytes.extend_from_slice(&piece[..count]);
            Ok(count > 0)
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(_) => Err(late()),
    }
}

/// Reads a request; none where nothing was sent.
///
/// # Errors
/// The answer to what is not a request, or is too large.
pub fn read(stream: &mut TcpStream) -> Result<Option<Request>, Answer> {
    let until = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let found = loop {
        if let Some(found) = head(&bytes)? {
            break found;
        }
        if !more(stream, until, &mut bytes)? {
            let whole = "the request ends before its headers do";
            return if bytes.is_empty() { Ok(None) } else { Err(Answer::refusal(400, whole)) };
        }
    };
    let Head { method, path, end, body } = found;
    let length = match body.length {
        Some(length) if length > MOST_BODY => {
            return Err(Answer::refusal(
                413,
                format!(
                    "the body has more than {} MiB: send the rows in several requests",
                    MOST_BODY >> 20
                ),
            ));
        }
        None if method == "POST" => {
            let text = "a body needs its length: send `Content-Length`";
            return Err(Answer::refusal(411, text));
        }
        length => length.unwrap_or(0),
    };
    let mut content = bytes.split_off(end);
    if body.waits && content.len() < length {
        // who is gone will not read the answer either
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
    }
    while content.len() < length {
        if !more(stream, until, &mut content)? {
            return Err(Answer::refusal(400, "the body is shorter than `Content-Length` says"));
        }
    }
    content.truncate(length);
    Ok(Some(Request { method, path, body: content, host: body.host }))
}

/// Sends an answer, and ends the connection. Who does not read it has had no use for it.
pub fn send(stream: &mut TcpStream, answer: &Answer) {
    let body = format!("{}\n", answer.body);
    let allow = answer.allow.map_or(String::new(), |methods| format!("Allow: {methods}\r\n"));
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{allow}\r\n",
        answer.status,
        reason(answer.status),
        body.len()
    );
    if !written(stream, (head + &body).as_bytes(), Instant::now() + PATIENCE) {
        return;
    }
    let _ = stream.shutdown(Shutdown::Write);
    if answer.status != 200 {
        drain(stream);
    }
}

/// Writes all bytes before a moment, whoever reads them, and however slowly; false where it could not.
fn written(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> bool {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_write_timeout(Some(left)).is_err() {
            return false;
        }
        match stream.write(bytes) {
            Ok(0) => return false,
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

/// Turns a connection away without waiting for whoever made it.
pub fn turn_away(stream: &mut TcpStream) {
    let body = "{\"error\":\"too many requests at once: try again\"}\n";
    let answer = format!(
        "HTTP/1.1 503 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        reason(503),
        body.len()
    );
    if stream.set_nonblocking(true).is_ok() {
        // who is not ready for so few bytes does without
        let _ = stream.write(answer.as_bytes());
    }
}

/// Reads what is still sent: a connection that is closed before takes the answer with it.
fn drain(stream: &mut TcpStream) {
    let (until, mut left) = (Instant::now() + REST.0, REST.1);
    let mut piece = [0; 16 << 10];
    while left > 0 && Instant::now() < until {
        let wait = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        if stream.set_read_timeout(Some(wait)).is_err() {
            return;
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => left = left.saturating_sub(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> Option<u16> {
        head(bytes).err().map(|answer| answer.status)
    }

    #[test]
    fn heads_are_read_or_refused() {
        let own = head(
            b"POST /predict?x=1 HTTP/1.1\r\ncontent-length: 12\r\nExpect: 100-continue\r\n\r\nrest",
        )
        .unwrap()
        .unwrap();
        assert_eq!(
            (own.method.as_str(), own.path.as_str(), own.body.length),
            ("POST", "/predict", Some(12))
        );
        assert!(own.body.waits);
        let host = |value: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: {value}\r\n\r\n");
            head(text.as_bytes()).unwrap().unwrap().body.host.unwrap()
        };
        assert_eq!(
            ["Localhost:8000", "127.0.0.1", "[::1]:80", "[::1]"].map(host),
            ["localhost", "127.0.0.1", "[::1]", "[::1]"]
        );
        assert!(head(b"GET / HTTP/1.1\r\nHost: a").unwrap().is_none());
        assert_eq!(status(b"\x16\x03\x01\x02\x00\x01"), Some(400));
        assert_eq!(status(b"GET / HTTP/1.1\r\nContent-Length: -3\r\n\r\n"), Some(400));
        assert_eq!(
            status(b"GET / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"),
            Some(400)
        );
        assert_eq!(status(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Some(411));
        let long = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(MOST_HEAD));
        assert_eq!(status(long.as_bytes()), Some(431));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(status(many.as_bytes()), Some(431));
        // more digits than a number has
        let huge = head(b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!(huge.body.length, Some(usize::MAX));
    }
}
