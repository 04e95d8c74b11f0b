//! A transport that answers from a script, and the recordings to write the script with.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    collections::BTreeMap,
    future, io,
    net::{IpAddr, Ipv4Addr},
    sync::Mutex,
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Method, Request, Response};
use serde_json::Value;
use windlass_systems::{Fault, Peer, Transport};

#[derive(Clone, Debug)]
pub enum Answering {
    Saying { status: u16, body: Bytes },
    Late(Duration, Box<Answering>),
    Refusing,
    Failing(Fault),
    Silent,
}

impl Answering {
    pub fn with(status: u16, body: &str) -> Self {
        Self::bytes(status, body.as_bytes().to_vec())
    }

    pub fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self::Saying { status, body: body.into() }
    }

    async fn answer(self) -> io::Result<Response<Bytes>> {
        match self {
            Self::Saying { status, body } => Ok(Response::builder().status(status).body(body).unwrap()),
            Self::Late(after, answer) => {
                tokio::time::sleep(after).await;
                Box::pin(answer.answer()).await
            }
            Self::Refusing => Err(io::ErrorKind::ConnectionRefused.into()),
            Self::Failing(fault) => Err(fault.into()),
            Self::Silent => future::pending().await,
        }
    }
}

#[derive(Clone)]
pub struct Asked {
    pub pod: String,
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Default)]
pub struct Scripted {
    answers: BTreeMap<String, Answering>,
    silent: Vec<String>,
    requests: Mutex<Vec<Asked>>,
}

impl Scripted {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn on(mut self, path: &str, answer: Answering) -> Self {
        self.answers.insert(path.to_owned(), answer);
        self
    }

    pub fn silence(mut self, pod: &str) -> Self {
        self.silent.push(pod.to_owned());
        self
    }

    pub fn requests(&self) -> Vec<Asked> {
        self.requests.lock().unwrap().clone()
    }
}

impl Transport for Scripted {
    fn send(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Bytes>>> {
        let answer = if self.silent.contains(&peer.pod) {
            Answering::Silent
        } else {
            self.answers.get(request.uri().path()).cloned().unwrap_or(Answering::with(404, "not scripted"))
        };
        self.requests.lock().unwrap().push(Asked {
            pod: peer.pod.clone(),
            method: request.method().clone(),
            headers: request.headers().clone(),
            body: request.body().clone(),
        });
        answer.answer().boxed()
    }
}

pub fn peer(pod: &str) -> Peer {
    Peer {
        pod: pod.to_owned(),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 2379,
        server_name: format!("{pod}.pd-peer.ns.svc"),
        tls: false,
    }
}

fn exchanges(file: &str) -> Vec<Value> {
    let path = format!("{}/../../recordings/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let recordings: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    recordings["exchanges"].as_array().unwrap().clone()
}

fn exchange(file: &str, name: &str) -> Value {
    let found = exchanges(file).into_iter().find(|exchange| exchange["name"] == name);
    found.unwrap_or_else(|| panic!("no recording {name}"))
}

/// Every recording in a file: the file, the name, and the request as `METHOD path`.
pub fn recordings(file: &'static str) -> Vec<(&'static str, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    exchanges(file).iter().map(|exchange| (file, text(&exchange["name"]), text(&exchange["request"]))).collect()
}

/// The body of a recorded answer as text; a string in the recording is one in JSON or plain, and the reader takes both.
pub fn recorded_body(file: &str, name: &str) -> String {
    let body = &exchange(file, name)["response"];
    body.as_str().map_or_else(|| body.to_string(), str::to_owned)
}

pub fn recorded(file: &str, name: &str) -> Answering {
    let status = exchange(file, name)["status"].as_u64().unwrap();
    Answering::with(u16::try_from(status).unwrap(), &recorded_body(file, name))
}
