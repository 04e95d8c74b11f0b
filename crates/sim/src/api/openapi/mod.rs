//! The API described: OpenAPI documents, one per group and version, behind an index.
//!
//! ```text
//!   /openapi/v3            every group-version, each with the hash of its document
//!   /openapi/v3/apis/<…>   schemas (builtin, custom) and paths
//! ```
//!
//! Clients read them to explain fields, to know how lists are merged, and to see which parameters a request may carry. Only
//! JSON is spoken here, and the second version of OpenAPI is not served: its one reader wants it in protobuf, and does without
//! where it is not found.

mod builtin;
mod custom;
mod facts;
mod paths;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use super::handle::json_response;
use super::query::parameter;
use super::resource::{Resource, Rules};
use super::store::Store;
use crate::rng;

/// A document as it goes over the wire.
#[derive(Clone)]
struct Document {
    body: Bytes,
    hash: String,
}

/// Documents of groups in which nothing can change, for all clusters of this process: each takes a while to make.
static MADE: LazyLock<Mutex<BTreeMap<String, Document>>> = LazyLock::new(Mutex::default);

/// The part of a path below `/openapi/v3`.
fn place(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// What is served in one group and version.
type Served = BTreeMap<(String, String), Vec<Arc<Resource>>>;

fn served(store: &Store) -> Served {
    let mut served = Served::new();
    for resource in store.resources() {
        for version in resource.versions.iter().filter(|version| version.served) {
            let place = (resource.group.clone(), version.name.clone());
            served.entry(place).or_default().push(Arc::clone(resource));
        }
    }
    served
}

/// `/openapi/v3`: where the documents are.
pub(super) fn index(store: &Store) -> Response<Bytes> {
    let paths: Map<String, Value> = served(store)
        .iter()
        .map(|((group, version), resources)| {
            let hash = document(store, group, version, resources).hash;
            let place = place(group, version);
            let url = format!("/openapi/v3/{place}?hash={hash}");
            (place, json!({"serverRelativeURL": url}))
        })
        .collect();
    json_response(StatusCode::OK, &json!({"paths": paths}))
}

/// `/openapi/v3/…`: one document; none where there is no such group and version. A client that has it already, or names a
/// hash that has passed, is told so.
pub(super) fn answer(store: &Store, path: &str, query: &str, known: &str) -> Option<Response<Bytes>> {
    let served = served(store);
    let ((group, version), resources) = served.iter().find(|((group, version), _)| place(group, version) == path)?;
    let document = document(store, group, version, resources);
    let tag = format!("\"{}\"", document.hash);
    let asked = parameter(query, "hash");
    let mut response = Response::new(Bytes::new());
    if asked.as_ref().is_some_and(|asked| *asked != document.hash) {
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        let now = format!("/openapi/v3/{path}?hash={}", document.hash);
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&now).ok()?);
        return Some(response);
    }
    if known == tag {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = document.body;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let caching = if asked.is_some() { "public, immutable" } else { "no-cache, private" };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).ok()?);
    Some(response)
}

fn document(store: &Store, group: &str, version: &str, resources: &[Arc<Resource>]) -> Document {
    if resources.iter().any(|resource| resource.rules == Rules::Custom) {
        return make(store, version, resources);
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(place(group, version)).or_insert_with(|| make(store, version, resources)).clone()
}

fn make(store: &Store, version: &str, resources: &[Arc<Resource>]) -> Document {
    let mut schemas = builtin::schemas(resources);
    let mut all = Map::new();
    for resource in resources {
        let Some(served) = resource.version(version) else { continue };
        let name = if resource.rules == Rules::Custom {
            custom::add(store, resource, version, &mut schemas)
        } else {
            builtin::name(resource)
        };
        let list = name_of_list(&name, &resource.kind, &resource.list_kind);
        schemas.insert(list.clone(), list_schema(&name, &kind_of(resource, version, &resource.list_kind)));
        if let Some(schema) = schemas.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource, version, &resource.kind)]);
        }
        all.append(&mut paths::of(resource, served, &name, &list));
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.34"},
        "paths": all,
        "components": {"schemas": schemas},
    });
    let body = Bytes::from(document.to_string());
    let hash = format!("{:016X}", rng::hash(body.iter().copied()));
    Document { body, hash }
}

fn kind_of(resource: &Resource, version: &str, kind: &str) -> Value {
    json!({"group": resource.group, "version": version, "kind": kind})
}

/// A list's definition stands beside that of its kind.
fn name_of_list(name: &str, kind: &str, list: &str) -> String {
    format!("{}{list}", name.strip_suffix(kind).unwrap_or_default())
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A field that is of a named type and has words of its own.
fn described(name: &str, description: &str) -> Value {
    json!({"description": description, "allOf": [reference(name)]})
}

fn list_schema(item: &str, kind: &Value) -> Value {
    json!({
        "description": format!("A list of {}.", item.rsplit('.').next().unwrap_or(item)),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The version of the API that this list is in."},
            "kind": {"type": "string", "description": "What this is a list of."},
            "metadata": described(builtin::LIST_META, "The list's own metadata."),
            "items": {"type": "array", "description": "The objects.", "items": {"default": {}, "allOf": [reference(item)]}},
        },
        "x-kubernetes-group-version-kind": [kind],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::journal::Journal;

    fn read(store: &Store, path: &str) -> Value {
        let response = answer(store, path, "", "").unwrap();
        serde_json::from_slice(response.body()).unwrap()
    }

    /// All references in a document, and whether what they name is there.
    fn dangling(value: &Value, document: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref")
                    && document.pointer(target.trim_start_matches('#')).is_none()
                {
                    found.push(target.clone());
                }
                map.values().for_each(|value| dangling(value, document, found));
            }
            Value::Array(list) => list.iter().for_each(|value| dangling(value, document, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_document_of_the_index_is_there_and_whole() {
        let store = Store::new(Clock::start(), Journal::default());
        let index: Value = serde_json::from_slice(index(&store).body()).unwrap();
        let paths = index["paths"].as_object().unwrap();
        assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
        for (path, entry) in paths {
            let document = read(&store, path);
            let mut found = Vec::new();
            dangling(&document, &document, &mut found);
            assert_eq!(found, [""; 0], "{path}");
            let url = entry["serverRelativeURL"].as_str().unwrap();
            let (_, query) = url.split_once('?').unwrap();
            assert_eq!(answer(&store, path, query, "").unwrap().status(), 200, "{url}");
        }
        assert!(answer(&store, "apis/none/v1", "", "").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_learns_whether_what_it_has_is_still_right() {
        let store = Store::new(Clock::start(), Journal::default());
        let first = answer(&store, "apis/apps/v1", "", "").unwrap();
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(answer(&store, "apis/apps/v1", "", &tag).unwrap().status(), 304);
        assert_eq!(answer(&store, "apis/apps/v1", "hash=old", "").unwrap().status(), 301);
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_found_by_its_path_and_its_schema() {
        let store = Store::new(Clock::start(), Journal::default());
        let document = read(&store, "apis/apps/v1");
        let kind = json!({"group": "apps", "version": "v1", "kind": "StatefulSet"});
        let path = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"];
        assert_eq!(path["patch"]["x-kubernetes-group-version-kind"], kind);
        let named = |parameter: &Value| parameter["name"] == "fieldValidation";
        assert!(path["patch"]["parameters"].as_array().unwrap().iter().any(named));
        let schema = &document["components"]["schemas"]["io.k8s.api.apps.v1.StatefulSet"];
        assert_eq!(schema["x-kubernetes-group-version-kind"], json!([kind]));
        assert_eq!(
            schema["properties"]["spec"]["allOf"][0]["$ref"],
            "#/components/schemas/io.k8s.api.apps.v1.StatefulSetSpec"
        );
    }
}
