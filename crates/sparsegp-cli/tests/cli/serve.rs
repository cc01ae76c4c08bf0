//! Predictions over HTTP.

use crate::support::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

/// Counts with an exposure, by dates, categories and numbers.
fn table() -> String {
    let mut text = "day,colour,size,hours,n\n".to_owned();
    for i in 0..100 {
        let size = (i * 37 % 100) as f64 / 20.0;
        let (colour, by) = [("red", 0.0), ("green", 0.9), ("blue", -0.6)][i % 3];
        let hours = 1 + i % 4;
        let n = (hours as f64 * (1.0 + 0.3 * size + by).exp()).round();
        text += &format!("2021-{:02}-{:02},{colour},{size},{hours},{n}\n", 1 + i % 12, 1 + i % 28);
    }
    text
}

/// A program that serves.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Folder, arguments: &str) -> Self {
        let mut child = folder
            .command(&format!("serve {arguments} --port 0"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = match line.split_once("http://") {
            Some((_, rest)) => rest.split_whitespace().next().unwrap().to_owned(),
            None => {
                let own: Value = serde_json::from_str(&line).unwrap();
                format!("{}:{}", own["host"].as_str().unwrap(), own["port"])
            }
        };
        assert!(address.starts_with("127.0.0.1:"), "{line}");
        Self { child, address }
    }

    /// Sends bytes as they are, and returns status, head and body of the answer.
    fn raw(&self, bytes: &[u8]) -> (u16, String, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // what is refused early may not be read to its end
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(
            head.starts_with("HTTP/1.1 ") && head.contains("Content-Type: application/json"),
            "{head}"
        );
        (status, head.to_owned(), serde_json::from_str(body).unwrap())
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:8000\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let (status, _, body) = self.raw(text.as_bytes());
        (status, body)
    }

    fn predict(&self, body: &Value) -> Value {
        let (status, found) = self.ask("POST", "/predict", &body.to_string());
        assert_eq!(status, 200, "{found}");
        found["predictions"].clone()
    }

    /// Ends it by a signal.
    fn end(mut self, signal: &str) -> String {
        assert!(
            Command::new("kill")
                .args([signal, &self.child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        text
    }
}

/// The predictions of `sparsegp predict`, row by row.
fn predicted(folder: &Folder, arguments: &str) -> Vec<Value> {
    let text = folder.ok(&format!("predict {arguments}")).out;
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let cell = |text: &str| text.parse::<f64>().map_or(json!(text), |number| json!(number));
    let row = |cells: Vec<&str>| {
        names.iter().zip(cells).map(|(name, text)| ((*name).to_owned(), cell(text))).collect()
    };
    lines.map(row).map(Value::Object).collect()
}

fn counts() -> Folder {
    let folder = Folder::new();
    folder.write("n.csv", table());
    folder.ok(
        "fit n.csv --target n --likelihood poisson --exposure hours --max-iterations 30 -o m.st",
    );
    folder
}

#[test]
fn places_are_asked_for_by_latitude_and_longitude() {
    let folder = Folder::new();
    let row = |i: usize| {
        let (a, b) = ((i * 37 % 60) as f64 - 30.0, (i * 53 % 80) as f64 + 140.0);
        let b = if b > 180.0 { b - 360.0 } else { b };
        format!("{a},{b},{:.3}\n", (a / 9.0).sin() + (i % 5) as f64 / 10.0)
    };
    folder.write("s.csv", format!("lat,long,y\n{}", (0..60).map(row).collect::<String>()));
    folder.ok("fit s.csv --target y --places lat,long --kernel rbf --max-iterations 5 -o s.st");
    folder.write("new.csv", "long,lat\n179,-20\n-179,-20.5\n");
    let server = Server::start(&folder, "s.st");
    let rows = json!([{ "lat": -20, "long": 179 }, { "lat": "-20.5", "long": -179.0 }]);
    assert_eq!(server.predict(&json!({ "rows": rows })), json!(predicted(&folder, "s.st new.csv")));
    for (row, words) in [
        (json!({ "lat": -20 }), ["row 1", "column `long` is missing"]),
        (json!({ "lat": 179, "long": -20 }), ["column `lat`", "LATITUDE,LONGITUDE"]),
    ] {
        let (status, found) = server.ask("POST", "/predict", &json!({ "rows": [row] }).to_string());
        let text = found.to_string();
        assert!(status != 200 && words.iter().all(|word| text.contains(word)), "{text}");
    }
    let (_, about) = server.ask("GET", "/", "");
    assert!(about.to_string().contains(r#"{"kind":"number","name":"long"}"#), "{about}");
    server.end("-TERM");
}

/// Texts are read as `sparsegp predict` reads them: dates and numbers as in the table that was learnt from.
#[test]
fn texts_are_read_as_the_table_was() {
    let folder = Folder::new();
    let comma = |value: f64| value.to_string().replace('.', ",");
    let row = |i: usize| {
        let (size, tons) = ((i * 37 % 60) as f64 / 20.0, 1000 + 53 * i % 800);
        let (day, y) = (1 + i % 28, size + (i % 12) as f64 / 4.0);
        let (size, y) = (comma(size), comma(y));
        format!("{day:02}/{:02}/2021;{size};1.{:03};{y}\n", 1 + i % 12, tons - 1000)
    };
    folder.write("t.csv", format!("day;size;tons;y\n{}", (0..60).map(row).collect::<String>()));
    let written = "--decimal , --thousands . --date-format %d/%m/%Y";
    folder.ok(&format!("fit t.csv --target y {written} --kernel rbf --max-iterations 5 -o t.st"));
    folder.write("new.csv", "day;size;tons\n03/04/2021;1,5;1.250\n28/02/2021;0,25;1.800\n");
    let expected = json!(predicted(&folder, "t.st new.csv"));
    let server = Server::start(&folder, "t.st");
    let rows = json!([
        { "day": "03/04/2021", "size": "1,5", "tons": "1.250" },
        // numbers of JSON are numbers
        { "day": "2021-02-28", "size": 0.25, "tons": 1800 },
    ]);
    assert_eq!(server.predict(&json!({ "rows": rows })), expected);
    let odd = json!({ "rows": [{ "day": "03/04/2021", "size": "1.5", "tons": 1 }] });
    let (status, found) = server.ask("POST", "/predict", &odd.to_string());
    assert_eq!(status, 400);
    let text = found.to_string();
    assert!(text.contains("column `size` `1.5` is not a number with a decimal comma"), "{text}");
    server.end("-TERM");
}

#[test]
fn answers_are_those_of_predict() {
    let folder = counts();
    folder
        .write("new.csv", "size,day,hours,colour\n1.5,2021-03-01,2,green\n90,2031-12-31,1,blue\n");
    let server = Server::start(&folder, "m.st");
    let rows = json!([
        { "size": 1.5, "day": "2021-03-01", "hours": 2, "colour": "green", "other": [1] },
        { "size": "90", "day": "2031-12-31", "hours": 1, "colour": "blue" },
    ]);
    assert_eq!(server.predict(&json!({ "rows": rows })), json!(predicted(&folder, "m.st new.csv")));
    let body = json!({ "rows": rows, "latent": true, "quantiles": [0.1, 0.5] });
    assert_eq!(
        server.predict(&body),
        json!(predicted(&folder, "m.st new.csv --latent --quantiles 0.1,0.5"))
    );
    // the exposure has its default
    let one = json!({ "size": 1.5, "day": "2021-03-01", "colour": "green" });
    let twice = server.predict(&json!({ "rows": [one] }))[0]["mean"].as_f64().unwrap() * 2.0;
    let with = server.predict(&json!({ "rows": rows }))[0]["mean"].as_f64().unwrap();
    assert!((with / twice - 1.0).abs() < 1e-12);
    let (status, about) = server.ask("GET", "/", "");
    assert_eq!(
        (status, &about["likelihood"], &about["targets"]),
        (200, &json!("poisson"), &json!(["n"]))
    );
    assert_eq!(about["inputs"][0], json!({ "name": "day", "kind": "date" }));
    let colours =
        json!({ "name": "colour", "kind": "category", "levels": ["blue", "green", "red"] });
    assert_eq!((&about["inputs"][1], &about["inputs"][2]["kind"]), (&colours, &json!("number")));
    assert_eq!(about["extra"], json!({ "name": "hours", "kind": "exposure", "default": 1.0 }));
    assert_eq!(about["columns"], json!(["mean", "sd", "q0.025", "q0.975"]));
    assert_eq!(server.ask("GET", "/health?now", ""), (200, json!({ "status": "ok" })));
    assert!(server.end("-INT").contains("ended after 6 connections"));
}

#[test]
fn unknown_categories_are_answered_where_that_is_asked_for() {
    let folder = counts();
    folder.write("new.csv", "size,day,hours,colour\n1.5,2021-03-01,2,pink\n");
    let server = Server::start(&folder, "m.st --unknown ignore");
    let rows = json!([{ "size": 1.5, "day": "2021-03-01", "hours": 2, "colour": "pink" }]);
    assert_eq!(
        server.predict(&json!({ "rows": rows })),
        json!(predicted(&folder, "m.st new.csv --unknown ignore"))
    );
    server.end("-TERM");
}

#[test]
fn classes_have_labels_and_probabilities() {
    let folder = Folder::new();
    folder.write("c.csv", table());
    folder.ok("fit c.csv --target colour --ignore day,hours --max-iterations 30 -o c.st");
    folder.write("new.csv", "n,size\n3,1.5\n20,4\n");
    let server = Server::start(&folder, "c.st --json");
    let rows = json!([{ "n": 3, "size": 1.5 }, { "n": 20, "size": 4 }]);
    assert_eq!(server.predict(&json!({ "rows": rows })), json!(predicted(&folder, "c.st new.csv")));
    let (_, about) = server.ask("GET", "/", "");
    assert_eq!(about["classes"], json!(["blue", "green", "red"]));
    server.end("-TERM");
}

#[test]
fn what_is_wrong_is_answered_with_row_column_and_remedy() {
    let folder = counts();
    let server = Server::start(&folder, "m.st");
    let row = json!({ "size": 1.5, "day": "2021-03-01", "colour": "green" });
    let with = |name: &str, value: Value| {
        let mut own = row.clone();
        own[name] = value;
        json!({ "rows": [row, own] }).to_string()
    };
    for (body, part) in [
        ("{".to_owned(), "the body is not JSON"),
        (String::new(), "the body is not JSON"),
        ("[1]".into(), "the body is not an object"),
        ("{}".into(), "there are no `rows`"),
        (json!({ "rows": [] }).to_string(), "`rows` is empty"),
        (json!({ "rows": {} }).to_string(), "`rows` is not a list"),
        (json!({ "rows": [3] }).to_string(), "row 1: it is not an object"),
        (json!({ "rows": [row], "quantile": [0.1] }).to_string(), "there is no `quantile`"),
        (json!({ "rows": [row], "quantiles": [1.1] }).to_string(), "between 0 and 1"),
        (json!({ "rows": [row], "latent": "yes" }).to_string(), "`latent` is true or false"),
        (with("size", Value::Null), "row 2: column `size` is missing"),
        (with("size", json!("wide")), "row 2: column `size` `wide` is not a number"),
        (with("size", json!([1])), "row 2: column `size` is a list"),
        (with("size", json!(true)), "row 2: column `size`"),
        (with("day", json!("soon")), "row 2: column `day`"),
        (with("colour", json!("pink")), "row 2: column `colour` `pink` is none of the categories"),
        (with("hours", json!(-1)), "row 2: column `hours` is -1"),
        ("{\"rows\": [{\"size\": 1e999}]}".into(), "the body is not JSON"),
        ("[".repeat(100_000), "the body is not JSON"),
    ] {
        let (status, found) = server.ask("POST", "/predict", &body);
        let text = found["error"].as_str().unwrap();
        assert!(
            status == 400 && text.contains(part),
            "{}: {status} {text}",
            &body[..body.len().min(99)]
        );
    }
    let (status, found) = server.ask("GET", "/models", "");
    assert!(status == 404 && found["error"].as_str().unwrap().contains("POST /predict"));
    let (status, head, _) = server.raw(b"DELETE /predict HTTP/1.1\r\n\r\n");
    assert!(status == 405 && head.contains("Allow: POST"), "{head}");
    assert_eq!(server.ask("POST", "/health", "{}").0, 405);
    for (bytes, status) in [
        (&b"\x16\x03\x01\x00\xff\xfe garbage\r\n\r\n"[..], 400),
        (b"POST /predict HTTP/1.1\r\n\r\n", 411),
        (b"POST /predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /predict HTTP/1.1\r\nContent-Length: ten\r\n\r\n", 400),
        (b"POST /predict HTTP/1.1\r\nContent-Length: 99\r\n\r\n{}", 400),
        (b"POST /predict HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n{}", 413),
        (b"GET / HTTP", 400),
    ] {
        assert_eq!(server.raw(bytes).0, status, "{}", String::from_utf8_lossy(bytes));
    }
    let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(100_000));
    assert_eq!(server.raw(long.as_bytes()).0, 431);
    let large = format!("POST /predict HTTP/1.1\r\nContent-Length: {}\r\n\r\n", 17 << 20);
    assert_eq!(server.raw(&[large.as_bytes(), &vec![b' '; 17 << 20]].concat()).0, 413);
    // many small rows are large in memory
    let rows = vec![json!({ "size": 1 }); 300_000];
    let (status, answer) = server.ask("POST", "/predict", &json!({ "rows": rows }).to_string());
    assert!(
        status == 413 && answer["error"].as_str().unwrap().contains("send at most"),
        "{answer}"
    );
    // a page elsewhere may have a browser here ask by its name
    let text = "GET / HTTP/1.1\r\nHost: example.org:8000\r\n\r\n";
    let (status, _, answer) = server.raw(text.as_bytes());
    assert!(status == 403 && answer["error"].as_str().unwrap().contains("example.org"), "{answer}");
    // somebody who says nothing and leaves
    drop(TcpStream::connect(&server.address).unwrap());
    // it has survived all of that
    assert_eq!(server.predict(&json!({ "rows": [row] })).as_array().unwrap().len(), 1);
    server.end("-TERM");
}

#[test]
fn several_ask_at_once() {
    let folder = counts();
    let server = Server::start(&folder, "m.st");
    let row =
        |size: f64| json!({ "rows": [{ "size": size, "day": "2021-03-01", "colour": "red" }] });
    let singly: Vec<Value> = (0..12).map(|i| server.predict(&row(f64::from(i)))).collect();
    // who begins and waits does not keep others waiting
    let mut slow = TcpStream::connect(&server.address).unwrap();
    slow.write_all(b"POST /predict HTTP/1.1\r\n").unwrap();
    let (server_ref, row_ref) = (&server, &row);
    let together: Vec<Value> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..12)
            .map(|i| scope.spawn(move || server_ref.predict(&row_ref(f64::from(i)))))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(singly, together);
    drop(slow);
    server.end("-INT");
}

#[test]
fn who_waits_for_a_word_gets_it() {
    let folder = counts();
    let server = Server::start(&folder, "m.st");
    let body = json!({ "rows": [{ "size": 1, "day": "2021-03-01", "colour": "red" }] }).to_string();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /predict HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
    stream.write_all(body.as_bytes()).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("HTTP/1.1 200 OK"), "{rest}");
    server.end("-TERM");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = counts();
    folder.refused(1, "serve nothing.st", &["nothing.st"]);
    folder.refused(2, "serve m.st --port 70000", &["70000"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    folder.refused(
        1,
        &format!("serve m.st --port {port}"),
        &["cannot listen at 127.0.0.1", "--port"],
    );
    folder.refused(
        1,
        "serve m.st --host no.such.host.invalid --port 0",
        &["cannot listen at no.such.host"],
    );
    let help = folder.ok("serve --help").out;
    assert!(
        help.contains("only this machine") && help.contains("neither passwords nor encryption")
    );
}
