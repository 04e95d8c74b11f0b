//! A server and plain requests to it.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use windlass_sim::api::{Api, Reply};
use windlass_sim::clock::Clock;
use windlass_sim::journal::Journal;

pub fn api() -> Api {
    Api::new(Clock::start(), Journal::default())
}

/// The answer's status code and body.
pub struct Answer {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

impl Answer {
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or("")
    }

    pub fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or("")
    }

    pub fn revision(&self) -> &str {
        self.body["metadata"]["resourceVersion"].as_str().unwrap_or("")
    }
}

pub fn send(api: &Api, method: Method, path: &str, content_type: &str, body: &Value) -> Answer {
    send_text(api, method, path, content_type, if body.is_null() { String::new() } else { body.to_string() })
}

pub fn send_text(api: &Api, method: Method, path: &str, content_type: &str, body: String) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(Bytes::from(body)).unwrap();
    match api.handle("tester", request, None) {
        Reply::Done(response) => {
            let warnings = response.headers().get_all("warning").iter();
            let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
            let body = response.body();
            let body = serde_json::from_slice(body)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
            Answer { code: response.status().as_u16(), body, warnings }
        }
        Reply::Watch(_) => panic!("{path} is a watch"),
    }
}

pub fn get(api: &Api, path: &str) -> Answer {
    send(api, Method::GET, path, "", &Value::Null)
}

pub fn post(api: &Api, path: &str, body: &Value) -> Answer {
    send(api, Method::POST, path, "application/json", body)
}

pub fn put(api: &Api, path: &str, body: &Value) -> Answer {
    send(api, Method::PUT, path, "application/json", body)
}

pub fn merge(api: &Api, path: &str, body: &Value) -> Answer {
    send(api, Method::PATCH, path, "application/merge-patch+json", body)
}

pub fn json_patch(api: &Api, path: &str, body: &Value) -> Answer {
    send(api, Method::PATCH, path, "application/json-patch+json", body)
}

pub fn delete(api: &Api, path: &str, body: &Value) -> Answer {
    send(api, Method::DELETE, path, "application/json", body)
}

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
pub const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
pub const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": data}})
}

pub fn pod(name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main", "image": "db:1"}]},
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    pod
}

pub fn stateful_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "serviceName": name, "replicas": 3, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "db:1"}]},
            },
        },
    })
}

/// A definition with a status part and a few rules.
pub fn widget_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
                }},
                "selectableFields": [{"jsonPath": ".spec.mode"}],
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                    "spec": {
                        "type": "object", "required": ["size"],
                        "properties": {
                            "size": {"type": "integer", "minimum": 0, "maximum": 9},
                            "mode": {"type": "string", "default": "Safe", "enum": ["Safe", "Fast"]},
                            "name": {"type": "string", "x-kubernetes-validations": [
                                {"rule": "self == oldSelf", "message": "name is immutable"},
                            ]},
                            "limit": {"type": "integer"},
                        },
                        "x-kubernetes-validations": [
                            {
                                "rule": "!has(self.limit) || self.size <= self.limit",
                                "messageExpression": "'size ' + string(self.size) + ' is over the limit'",
                                "fieldPath": ".size", "reason": "FieldValueForbidden",
                            },
                            {"rule": "self.mode != 'Fast' || self.size > 1"},
                        ],
                    },
                    "status": {"type": "object", "default": {"size": 0}, "properties": {
                        "size": {"type": "integer"}, "note": {"type": "string"},
                    }},
                }}},
            }],
        },
    })
}

pub fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub fn api_with_widgets() -> Api {
    let api = api();
    api.create_value("tester", widget_definition()).unwrap();
    api
}
