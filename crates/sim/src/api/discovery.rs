//! What the server serves, told in both forms that clients ask for.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::definition;
use super::handle::json_response;
use super::query::Route;
use super::resource::{Resource, Rules, Version};
use super::store::Store;

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What is left of a kind whose definition is being deleted.
const LAST_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];

/// Namespaces are deleted one by one.
fn verbs(store: &Store, resource: &Resource) -> Vec<&'static str> {
    if resource.rules == Rules::Custom && definition::is_ending(store, &resource.id) {
        return LAST_VERBS.to_vec();
    }
    let refused = if resource.rules == Rules::Namespace { "deletecollection" } else { "" };
    VERBS.into_iter().filter(|verb| *verb != refused).collect()
}

/// A part of an object that has an address of its own.
struct Part {
    name: &'static str,
    group: Option<&'static str>,
    kind: Option<&'static str>,
    verbs: &'static [&'static str],
}

fn parts(resource: &Resource, version: &Version) -> Vec<Part> {
    let mut parts = Vec::new();
    if resource.rules == Rules::Pod {
        parts.push(Part { name: "binding", group: Some(""), kind: Some("Binding"), verbs: &["create"] });
        parts.push(Part { name: "eviction", group: Some("policy"), kind: Some("Eviction"), verbs: &["create"] });
        parts.push(Part { name: "log", group: None, kind: None, verbs: &["get"] });
    }
    if resource.rules == Rules::Namespace {
        parts.push(Part { name: "finalize", group: None, kind: None, verbs: &["update"] });
    }
    if version.scale.is_some() {
        parts.push(Part { name: "scale", group: Some("autoscaling"), kind: Some("Scale"), verbs: &PART_VERBS });
    }
    if version.status {
        parts.push(Part { name: "status", group: None, kind: None, verbs: &PART_VERBS });
    }
    parts
}

/// Answers a discovery request; none where the group or version doesn't exist.
pub(super) fn answer(store: &Store, route: &Route, aggregated: bool) -> Option<Response<Bytes>> {
    let groups = groups(store);
    let body = match route {
        Route::CoreVersions if aggregated => {
            return Some(aggregate(store, groups.into_iter().filter(|(group, _)| group.is_empty())));
        }
        Route::Groups if aggregated => {
            return Some(aggregate(store, groups.into_iter().filter(|(group, _)| !group.is_empty())));
        }
        Route::CoreVersions => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
        }),
        Route::Groups => {
            let list: Vec<Value> = groups.iter().filter(|(name, _)| !name.is_empty()).map(group_value).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list})
        }
        Route::Group(name) => {
            let mut value = group_value(groups.iter().find(|(group, _)| *group == name && !name.is_empty())?);
            value["kind"] = json!("APIGroup");
            value["apiVersion"] = json!("v1");
            value
        }
        Route::Resources { group, version } => {
            let (_, versions) = groups.iter().find(|(name, _)| *name == group)?;
            let (_, resources) = versions.iter().find(|(name, _)| name == version)?;
            resource_list(store, group, version, resources)
        }
        Route::Objects { .. }
        | Route::Documents
        | Route::Document(_)
        | Route::Version
        | Route::Health
        | Route::Unknown => return None,
    };
    Some(json_response(StatusCode::OK, &body))
}

/// A group's versions, the preferred one first, each with what it serves.
type Versions = Vec<(String, Vec<Arc<Resource>>)>;
type Groups = BTreeMap<String, Versions>;

fn groups(store: &Store) -> Groups {
    let mut groups = Groups::new();
    for resource in store.resources() {
        let versions = groups.entry(resource.group.clone()).or_default();
        for version in resource.versions.iter().filter(|version| version.served) {
            match versions.iter_mut().find(|(name, _)| *name == version.name) {
                Some((_, resources)) => resources.push(Arc::clone(resource)),
                None => versions.push((version.name.clone(), vec![Arc::clone(resource)])),
            }
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|(name, _)| std::cmp::Reverse(priority(name)));
    }
    groups
}

/// Stable before beta before alpha, then the higher number.
fn priority(version: &str) -> (u8, u64, u64) {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    if let Some((major, minor)) = rest.split_once("beta") {
        (2, number(major), number(minor))
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (1, number(major), number(minor))
    } else {
        (3, number(rest), 0)
    }
}

fn group_value((name, versions): (&String, &Versions)) -> Value {
    let list: Vec<Value> = versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": list, "preferredVersion": list.first()})
}

fn resource_list(store: &Store, group: &str, version: &str, resources: &[Arc<Resource>]) -> Value {
    let mut list = Vec::new();
    for resource in resources {
        let Some(served) = resource.version(version) else { continue };
        let mut value = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": verbs(store, resource),
        });
        if !resource.short_names.is_empty() {
            value["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            value["categories"] = json!(resource.categories);
        }
        list.push(value);
        for part in parts(resource, served) {
            let mut value = json!({
                "name": format!("{}/{}", resource.plural, part.name),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": part.kind.unwrap_or(&resource.kind),
                "verbs": part.verbs,
            });
            if let Some(group) = part.group.filter(|group| !group.is_empty()) {
                value["group"] = json!(group);
                value["version"] = json!("v1");
            }
            list.push(value);
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list})
}

fn aggregate(store: &Store, groups: impl Iterator<Item = (String, Versions)>) -> Response<Bytes> {
    let items: Vec<Value> = groups
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|(version, resources)| {
                    let list: Vec<Value> =
                        resources.iter().filter_map(|resource| aggregated_resource(store, resource, version)).collect();
                    json!({"version": version, "resources": list, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": group, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let body = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let mut response = json_response(StatusCode::OK, &body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
    response
}

fn aggregated_resource(store: &Store, resource: &Resource, version: &str) -> Option<Value> {
    let served = resource.version(version)?;
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut value = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(store, resource),
    });
    if !resource.short_names.is_empty() {
        value["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        value["categories"] = json!(resource.categories);
    }
    let parts: Vec<Value> = parts(resource, served)
        .into_iter()
        .map(|part| {
            let group = part.group.unwrap_or(&resource.group);
            let version = if part.group.is_some() { "v1" } else { version };
            let response = kind(group, version, part.kind.unwrap_or(&resource.kind));
            json!({"subresource": part.name, "responseKind": response, "verbs": part.verbs})
        })
        .collect();
    if !parts.is_empty() {
        value["subresources"] = json!(parts);
    }
    Some(value)
}

/// What `/version` says.
pub(super) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "34",
        "gitVersion": "v1.34.4",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    })
}
