//! `sparsegp serve`: predictions of a model over HTTP.

mod answers;
mod http;
mod rows;

use crate::context::{Context, Reply};
use crate::data::UnknownChoice;
use crate::fail::{Fail, Result};
use answers::Service;
use clap::Args;
use http::{Answer, read, send, turn_away};
use serde_json::json;
use sparsegp::io;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const AFTER: &str = "\
Examples:
  sparsegp serve model.safetensors
  sparsegp serve model.safetensors --port 0          (a free port, which is printed)
  curl http://127.0.0.1:8000/
  curl http://127.0.0.1:8000/predict -d '{\"rows\": [{\"age\": 41, \"city\": \"Lyon\", \"day\": \"2026-03-01\"}]}'

GET /          what the model is: its inputs with kinds and levels, targets, likelihood, columns of predictions
GET /health    {\"status\": \"ok\"}
POST /predict  {\"rows\": [{\"column\": value, …}, …]}, and if wanted \"quantiles\": [0.05, 0.95], \"latent\": true; answers
               {\"predictions\": [{\"mean\": …, \"sd\": …, \"q0.025\": …}, …]}, the columns of `sparsegp predict`

Values are as in a table: numbers, texts, dates. Texts are read as those of the table that the model learnt from, with its
decimal separator and its formats of dates. Columns that the model does not have do not matter. What is wrong is
answered by 400 and {\"error\": …} with row and column. A request has at most 16 MiB, and a million numbers in rows and
answers: more is answered by 413.

Only this machine can ask, unless --host says otherwise (0.0.0.0: all machines that reach this one). There are
neither passwords nor encryption: put a server that has them in front. Ctrl-C or SIGTERM ends it after the requests at hand.";

/// Requests at once, and how many more wait for their turn.
const WORKERS: usize = 8;
const WAITING: usize = 64;
/// How often it is looked whether somebody wants an end.
const PAUSE: Duration = Duration::from_millis(20);

/// Options of `sparsegp serve`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ServeArgs {
    /// Model file
    pub model: PathBuf,
    /// Address to listen at; by default only this machine can ask
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: String,
    /// Port to listen at; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub port: u16,
    /// Take inputs for exact although the fit had standard deviations of them
    #[arg(long)]
    pub exact_inputs: bool,
    /// What to do with categories that no training row had
    #[arg(long, value_enum, default_value_t)]
    pub unknown: UnknownChoice,
}

/// Answers the request of a connection; a defect of ours is an answer too.
fn serve(service: &Service, mut stream: TcpStream) {
    if stream.set_nonblocking(false).is_err() {
        return;
    }
    let answer = match read(&mut stream) {
        Ok(None) => return,
        Err(answer) => answer,
        Ok(Some(request)) => catch_unwind(AssertUnwindSafe(|| service.answer(&request)))
            .unwrap_or_else(|_| {
                Answer::refusal(500, "the request led to a defect of the program: please report it")
            }),
    };
    send(&mut stream, &answer);
}

/// Serves connections until none are left to come.
fn work(service: &Service, connections: &Mutex<Receiver<TcpStream>>) {
    loop {
        let next = connections.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(stream) => serve(service, stream),
            Err(_) => return,
        }
    }
}

/// Says where it listens, before the first request.
fn announce(address: SocketAddr, args: &ServeArgs, context: &Context) -> Result<()> {
    let line = match context.json() {
        true => {
            let (host, port) = (address.ip().to_string(), address.port());
            json!({ "command": "serve", "model": args.model, "host": host, "port": port })
                .to_string()
        }
        false => format!("serving {} at http://{address} (Ctrl-C ends it)", args.model.display()),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| Fail::output("stdout", &e))
}

/// Runs the command.
pub fn run(args: &ServeArgs, context: &Context) -> Result<Reply> {
    let mut fitted = io::load(&args.model)?;
    fitted.unknown = args.unknown.into();
    let fitted = if args.exact_inputs { fitted.without_input_deviations() } else { fitted };
    if !fitted.input_deviations.is_empty() {
        return Err(Fail::usage(
            "the model learnt from inputs with standard deviations, which the server does not read: add --exact-inputs to take \
             inputs for exact, or use `sparsegp predict`",
        ));
    }
    let failed = |e: std::io::Error| {
        Fail::Work(format!(
            "cannot listen at {}, port {}: {e}; choose another --port (0 takes a free one) or --host",
            args.host, args.port
        ))
    };
    let listener = TcpListener::bind((args.host.as_str(), args.port)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let service = Service::new(fitted, address.ip().is_loopback());
    announce(address, args, context)?;
    if !address.ip().is_loopback() {
        context.note("note: other machines can ask too, without password or encryption");
    }
    let (sender, receiver) = sync_channel(WAITING);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(&service, &receiver));
        }
        let mut answered = 0_u64;
        while !context.interrupted() {
            match listener.accept() {
                Ok((stream, _)) => {
                    answered += 1;
                    if let Err(TrySendError::Full(mut stream)) = sender.try_send(stream) {
                        turn_away(&mut stream);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
                // a connection that is gone before it is accepted, or too many files: others may come
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        // no more connections: the workers end
        drop(sender);
        context.note(&format!("ended after {answered} connections"));
    });
    Ok(Reply { text: String::new(), json: json!(null), is_result: false })
}
