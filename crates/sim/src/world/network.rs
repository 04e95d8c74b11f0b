//! The pod network: a request to a pod's address reaches the process behind it, if there is one.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use super::World;
use super::queue::Key;
use super::state::State;
use crate::apps::{Answer, BadAnswer};
use crate::journal::Event as Entry;

/// No caller waits longer than this for a process that never answers.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// What becomes of a request.
enum Outcome {
    Answered(Response<Bytes>, Duration),
    Refused,
    Silence,
}

impl State {
    /// The pod at an address: its number, or the name that its headless service gives it.
    fn pod_at(&self, host: &str) -> Option<Key> {
        if let Some(key) = self.addresses.get(host) {
            // Addresses are never used twice, so an old one leads nowhere.
            return self.pods.get(key).filter(|pod| pod.address.as_deref() == Some(host)).map(|_| key.clone());
        }
        let mut labels = host.split('.');
        let (pod, _service, namespace) = (labels.next()?, labels.next()?, labels.next()?);
        let key = Key::new(namespace, pod);
        self.pods.contains_key(&key).then_some(key)
    }

    /// What the Service of this cluster address answers; none where there is no such Service.
    fn service_at(&mut self, user: &str, request: &Request<Bytes>) -> Option<Outcome> {
        let host = request.uri().host()?;
        let services = self.api.list_values("services", "");
        let address = |service: &Value| service.pointer("/spec/clusterIP")?.as_str().map(str::to_owned);
        let service = services.iter().find(|service| address(service).as_deref() == Some(host))?;
        let text = |path: &str| service.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let key = Key::new(text("/metadata/namespace"), text("/metadata/name"));
        let Some(answer) = self.services.get(&key).cloned() else { return Some(Outcome::Refused) };
        let what = format!("{} {}", request.method(), request.uri().path());
        let verb = Entry::Verb { user: user.to_owned(), pod: key.name, what, changed: false };
        self.journal.push(self.clock.now(), verb);
        let mut response = Response::new(Bytes::from(answer.body));
        *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
        Some(Outcome::Answered(response, Duration::ZERO))
    }

    fn deliver(&mut self, user: &str, request: &Request<Bytes>) -> Outcome {
        let Some(key) = request.uri().host().and_then(|host| self.pod_at(host)) else {
            // Where nobody has this address packets are lost: nobody is there to refuse.
            return self.service_at(user, request).unwrap_or(Outcome::Silence);
        };
        let Some(pod) = self.pods.get(&key) else { return Outcome::Silence };
        if self.nodes.get(&pod.node).is_none_or(|node| node.down) || pod.is_hung() {
            return Outcome::Silence;
        }
        let Some(workload) = pod.served_workload().cloned() else { return Outcome::Refused };
        let spoiled = |status, body: &'static [u8]| {
            let mut response = Response::new(Bytes::from_static(body));
            *response.status_mut() = status;
            Outcome::Answered(response, Duration::ZERO)
        };
        match self.bad_answers.get(&key) {
            Some(BadAnswer::Garbage) => return spoiled(StatusCode::OK, b"\x7f{\"members\": [,,"),
            Some(BadAnswer::Status500) => return spoiled(StatusCode::INTERNAL_SERVER_ERROR, b"internal error\n"),
            Some(BadAnswer::Empty) => return spoiled(StatusCode::OK, b""),
            Some(BadAnswer::Nothing) => return Outcome::Silence,
            Some(BadAnswer::Refused) => return Outcome::Refused,
            None => {}
        }
        let answer = self.with_app(&workload, |app, context| app.answer(context, &key.name, request)).flatten();
        let Some(Answer { response, after, changed }) = answer else { return Outcome::Silence };
        if matches!(*request.method(), Method::POST | Method::PUT | Method::DELETE) {
            let what = format!("{} {}", request.method(), request.uri().path());
            let verb = Entry::Verb { user: user.to_owned(), pod: key.name, what, changed };
            self.journal.push(self.clock.now(), verb);
        }
        Outcome::Answered(response, after)
    }

    fn latency(&mut self) -> Duration {
        self.draws.network.between(Duration::from_millis(1), Duration::from_millis(20))
    }
}

impl World {
    /// One request to a pod's address (`http://10.x.y.z:port/path`), answered by the process in it. `user` is who calls.
    pub fn dial(&self, user: &str, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Bytes>>> {
        let (world, user) = (self.clone(), user.to_owned());
        async move {
            let there = world.state().latency();
            sleep(there).await;
            let outcome = world.disturb(None, |state| state.deliver(&user, &request));
            match outcome {
                Outcome::Answered(response, after) => {
                    sleep(after).await;
                    Ok(response)
                }
                Outcome::Refused => Err(Error::from(ErrorKind::ConnectionRefused)),
                Outcome::Silence => {
                    sleep(LONGEST_WAIT).await;
                    Err(Error::from(ErrorKind::TimedOut))
                }
            }
        }
        .boxed()
    }
}
