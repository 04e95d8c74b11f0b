//! What processes write, as their kubelets keep it, and `pods/log`, which shows it: of the present run, or of the one before.
//!
//! Kubelets write it here because here it is asked for; a real server asks them. Nothing is followed: what is there is answered.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::error::{self, Answer};
use super::object::{meta_text, name};
use super::query::parameter;
use super::{Api, Reply};

/// Runs that are kept of each container: the present one and the one before.
const RUNS: usize = 2;
/// Lines that are kept of each run.
const LINES: usize = 100;

/// The runs of a container, the newest last, and what each wrote.
type Runs = VecDeque<VecDeque<String>>;

/// What all processes wrote, by the pod's uid and the container's name.
#[derive(Debug, Default)]
pub(crate) struct ProcessLogs(BTreeMap<String, BTreeMap<String, Runs>>);

impl Api {
    /// A container's process starts.
    pub(crate) fn begin_log(&self, uid: &str, container: &str) {
        let mut store = self.lock();
        let runs = store.logs.0.entry(uid.to_owned()).or_default().entry(container.to_owned()).or_default();
        runs.push_back(VecDeque::new());
        if runs.len() > RUNS {
            runs.pop_front();
        }
    }

    /// A container's process writes a line.
    pub(crate) fn write_log(&self, uid: &str, container: &str, line: &str) {
        let mut store = self.lock();
        let runs = store.logs.0.get_mut(uid).and_then(|containers| containers.get_mut(container));
        let Some(run) = runs.and_then(VecDeque::back_mut) else { return };
        run.push_back(line.to_owned());
        if run.len() > LINES {
            run.pop_front();
        }
    }

    /// The pod is gone, and its logs with it.
    pub(crate) fn forget_logs(&self, uid: &str) {
        self.lock().logs.0.remove(uid);
    }
}

impl ProcessLogs {
    /// Answers a request for the log of this pod.
    pub(super) fn answer(&self, pod: &Value, query: &str) -> Answer<Reply> {
        let container = container(pod, parameter(query, "container"))?;
        let pod_name = name(pod);
        let previous = parameter(query, "previous").is_some_and(|value| matches!(value.as_str(), "true" | "1"));
        let number = |name: &str| match parameter(query, name) {
            None => Ok(None),
            Some(text) => text
                .parse::<usize>()
                .map(Some)
                .map_err(|_| error::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
        };
        let (tail, limit) = (number("tailLines")?, number("limitBytes")?);
        if pod.pointer("/spec/nodeName").is_none() {
            return Ok(text(String::new(), None));
        }
        let status = statuses(pod).find(|status| status["name"] == container.as_str()).unwrap_or(&Value::Null);
        let waiting = status.pointer("/state/waiting");
        let ended_before = status.pointer("/lastState/terminated").is_some();
        if previous && !ended_before {
            let message = format!("previous terminated container {container:?} in pod {pod_name:?} not found");
            return Err(error::bad_request(message));
        }
        let runs = self.0.get(meta_text(pod, "uid")).and_then(|containers| containers.get(&container));
        let none = Runs::new();
        let mut newest_first = runs.unwrap_or(&none).iter().rev();
        // While a container waits to be started again, the run that ended last is the one before.
        let run = if previous && waiting.is_none() { newest_first.nth(1) } else { newest_first.next() };
        let Some(run) = run.filter(|_| waiting.is_none() || ended_before) else {
            let reason = waiting.and_then(|waiting| waiting["reason"].as_str()).unwrap_or("no logs yet");
            let message = format!("container {container:?} in pod {pod_name:?} is waiting to start: {reason}");
            return Err(error::bad_request(message));
        };
        let skipped = tail.map_or(0, |tail| run.len().saturating_sub(tail));
        Ok(text(run.iter().skip(skipped).flat_map(|line| [line, "\n"]).collect(), limit))
    }
}

/// The containers of a pod as their kubelet shows them.
fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    let of = |field: &str| pod.pointer(field).and_then(Value::as_array).into_iter().flatten();
    of("/status/initContainerStatuses").chain(of("/status/containerStatuses"))
}

/// The container that is meant.
fn container(pod: &Value, asked: Option<String>) -> Answer<String> {
    let of = |field: &str| pod.pointer(field).and_then(Value::as_array).into_iter().flatten();
    let names = |field: &'static str| of(field).filter_map(|container| container["name"].as_str());
    let mains: Vec<&str> = names("/spec/containers").collect();
    match (asked.filter(|asked| !asked.is_empty()), mains.as_slice()) {
        (Some(asked), mains) if mains.contains(&asked.as_str()) => Ok(asked),
        (Some(asked), _) if names("/spec/initContainers").any(|init| init == asked) => Ok(asked),
        (Some(asked), _) => Err(error::bad_request(format!("container {asked} is not valid for pod {}", name(pod)))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, mains) => {
            let (pod, all) = (name(pod), mains.join(" "));
            let message = format!("a container name must be specified for pod {pod}, choose one of: [{all}]");
            Err(error::bad_request(message))
        }
    }
}

/// Lines as they are, and no more bytes of them than asked for.
fn text(lines: String, limit: Option<usize>) -> Reply {
    let mut bytes = Bytes::from(lines);
    bytes.truncate(limit.unwrap_or(usize::MAX));
    let mut response = Response::new(bytes);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Reply::Done(response)
}
