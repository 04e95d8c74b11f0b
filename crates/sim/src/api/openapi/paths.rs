//! What can be asked of a resource: its paths, their verbs and their parameters.

use serde_json::{Map, Value, json};

use super::super::resource::{Resource, Rules, Version};
use super::{builtin, kind_of, place, reference};

const WRITING: [(&str, &str); 3] = [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];

const READING: [(&str, &str); 10] = [
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const DELETING: [(&str, &str); 4] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// What an operation is about.
struct Operation<'a> {
    action: &'a str,
    kind: &'a Value,
    parameters: &'a [(&'a str, &'a str)],
    answer: &'a str,
}

impl Operation<'_> {
    fn value(&self) -> Value {
        let answer = json!({"description": "OK", "content": {"application/json": {"schema": reference(self.answer)}}});
        json!({
            "parameters": query(self.parameters),
            "responses": {"200": answer},
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": self.kind,
        })
    }

    fn with_body(&self, media: &[&str], schema: &str) -> Value {
        let content: Map<String, Value> =
            media.iter().map(|media| ((*media).to_owned(), json!({"schema": reference(schema)}))).collect();
        let mut value = self.value();
        value["requestBody"] = json!({"content": content, "required": true});
        value
    }
}

fn query(parameters: &[(&str, &str)]) -> Value {
    let all = parameters.iter();
    all.map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}}))
        .collect()
}

fn in_path(names: &[&str]) -> Value {
    let all = names.iter();
    all.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})).collect()
}

/// All paths of a resource.
pub(super) fn of(resource: &Resource, version: &Version, schema: &str, list: &str) -> Map<String, Value> {
    let kind = kind_of(resource, &version.name, &resource.kind);
    let root = format!("/{}", place(&resource.group, &version.name));
    let plural = &resource.plural;
    let (collection, names): (String, &[&str]) = if resource.namespaced {
        (format!("{root}/namespaces/{{namespace}}/{plural}"), &["namespace"])
    } else {
        (format!("{root}/{plural}"), &[])
    };
    let of_one: Vec<&str> = [names, &["name"]].concat();
    let mut paths = Map::new();
    let read_all = Operation { action: "list", kind: &kind, parameters: &READING, answer: list };
    if resource.namespaced {
        paths.insert(format!("{root}/{plural}"), json!({"get": read_all.value()}));
    }
    let create = Operation { action: "post", kind: &kind, parameters: &WRITING, answer: schema };
    let delete_all = Operation {
        action: "deletecollection",
        kind: &kind,
        parameters: &[&READING[..], &DELETING[..]].concat(),
        answer: builtin::STATUS,
    };
    paths.insert(
        collection.clone(),
        json!({
            "get": read_all.value(),
            "post": create.with_body(&["application/json"], schema),
            "delete": delete_all.value(),
            "parameters": in_path(names),
        }),
    );
    let one = format!("{collection}/{{name}}");
    let mut verbs = part(resource, &kind, schema);
    let delete = Operation { action: "delete", kind: &kind, parameters: &DELETING, answer: builtin::STATUS };
    verbs["delete"] = delete.with_body(&["application/json"], builtin::DELETE_OPTIONS);
    verbs["parameters"] = in_path(&of_one);
    paths.insert(one.clone(), verbs);
    if version.status {
        let mut verbs = part(resource, &kind, schema);
        verbs["parameters"] = in_path(&of_one);
        paths.insert(format!("{one}/status"), verbs);
    }
    if version.scale.is_some() {
        let mut verbs =
            part(resource, &json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}), builtin::SCALE);
        verbs["parameters"] = in_path(&of_one);
        paths.insert(format!("{one}/scale"), verbs);
    }
    if resource.rules == Rules::Pod {
        let kind = json!({"group": "policy", "version": "v1", "kind": "Eviction"});
        let evict = Operation { action: "post", kind: &kind, parameters: &WRITING, answer: builtin::EVICTION };
        let post = evict.with_body(&["application/json"], builtin::EVICTION);
        paths.insert(format!("{one}/eviction"), json!({"post": post, "parameters": in_path(&of_one)}));
    }
    paths
}

/// Reading, replacing and patching.
fn part(resource: &Resource, kind: &Value, schema: &str) -> Value {
    let mut media = vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    if resource.rules != Rules::Custom {
        media.push("application/strategic-merge-patch+json");
    }
    let patching = [&WRITING[..], &[("force", "boolean")]].concat();
    let read = Operation { action: "get", kind, parameters: &[], answer: schema };
    let replace = Operation { action: "put", kind, parameters: &WRITING, answer: schema };
    let patch = Operation { action: "patch", kind, parameters: &patching, answer: schema };
    json!({
        "get": read.value(),
        "put": replace.with_body(&["application/json"], schema),
        "patch": patch.with_body(&media, builtin::PATCH),
    })
}
