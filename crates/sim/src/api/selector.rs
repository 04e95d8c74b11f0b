//! Label and field selectors: their grammar and what they select.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::{Answer, bad_request};
use super::object;
use super::resource::{Resource, Rules, Version};
use super::selector_text;

/// One requirement on labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Requirement {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// A label selector, as a query's text or as an object's `matchLabels` and `matchExpressions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Requirement>);

impl Labels {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn parse(text: &str) -> Answer<Self> {
        selector_text::parse(text).map(Self).map_err(bad_request)
    }

    /// From a `LabelSelector`; none where an operator is unknown.
    pub(crate) fn from_object(selector: &Value) -> Option<Self> {
        let mut requirements = Vec::new();
        for (key, value) in object::at(selector, &["matchLabels"]).and_then(Value::as_object).into_iter().flatten() {
            requirements.push(Requirement::In(key.clone(), BTreeSet::from([value.as_str()?.to_owned()])));
        }
        let expressions = object::at(selector, &["matchExpressions"]).and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let key = object::text(expression, &["key"]).to_owned();
            let values = object::at(expression, &["values"]).and_then(Value::as_array);
            let values = values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(match object::text(expression, &["operator"]) {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::Absent(key),
                _ => return None,
            });
        }
        Some(Self(requirements))
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn matches(&self, labels: Option<&Value>) -> bool {
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        let number = |key: &str| label(key).and_then(|value| value.parse::<i64>().ok());
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|value| !values.contains(value)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
            Requirement::Greater(key, bound) => number(key).is_some_and(|value| value > *bound),
            Requirement::Less(key, bound) => number(key).is_some_and(|value| value < *bound),
        })
    }
}

/// Whether a label selector, as `labelSelector=` writes it, selects an object. One that the server would refuse selects nothing.
pub fn selects(selector: &str, object: &Value) -> bool {
    Labels::parse(selector).is_ok_and(|labels| labels.matches(object.pointer("/metadata/labels")))
}

/// A `LabelSelector` as the text that a query would have.
pub(crate) fn text_of(selector: &Value) -> String {
    let mut terms = Vec::new();
    for (key, value) in object::at(selector, &["matchLabels"]).and_then(Value::as_object).into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str().unwrap_or("")));
    }
    let expressions = object::at(selector, &["matchExpressions"]).and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = object::text(expression, &["key"]);
        let values = object::at(expression, &["values"]).and_then(Value::as_array);
        let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        terms.push(match object::text(expression, &["operator"]) {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.join(",")
}

/// A field selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<Term>);

#[derive(Clone, Debug)]
struct Term {
    path: Vec<String>,
    equal: bool,
    value: String,
}

impl Fields {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Only the fields that this resource offers may be named.
    pub(crate) fn parse(text: &str, resource: &Resource, version: &Version) -> Answer<Self> {
        let mut parts: Vec<&str> = text.split(',').filter(|part| !part.is_empty()).collect();
        // The server sorts them, which shows in what it complains about first.
        parts.sort_unstable();
        let mut read = Vec::new();
        for part in parts {
            read.push(if let Some((field, value)) = part.split_once("!=") {
                (field, false, value)
            } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (field, true, value)
            } else {
                return Err(bad_request(format!("invalid selector: '{text}'; can't understand '{part}'")));
            });
        }
        let mut terms = Vec::new();
        for (field, equal, value) in read {
            let path = stored_path(field, resource, version)?;
            terms.push(Term { path: path.split('.').map(str::to_owned).collect(), equal, value: value.to_owned() });
        }
        Ok(Self(terms))
    }

    /// Whether at most one object of a namespace is selected.
    pub(crate) fn names_one(&self) -> bool {
        self.0.iter().any(|term| term.equal && term.path == ["metadata", "name"])
    }

    /// Judges the object as it is stored.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| {
            let path: Vec<&str> = term.path.iter().map(String::as_str).collect();
            let found = match object::at(object, &path) {
                Some(Value::String(text)) => *text == term.value,
                Some(other) => format!("{other}") == term.value,
                // Two fields read as "false" when unset, all others as empty.
                None => term.value.is_empty() || (term.value == "false" && boolean(&term.path)),
            };
            found == term.equal
        })
    }
}

fn boolean(path: &[String]) -> bool {
    path.last().is_some_and(|last| last == "unschedulable" || last == "hostNetwork")
}

/// Where the stored object has the field, if it may be selected by.
fn stored_path(field: &str, resource: &Resource, version: &Version) -> Answer<String> {
    let offered: &[&str] = match resource.rules {
        Rules::Pod => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        Rules::Namespace => &["status.phase"],
        Rules::Node => &["spec.unschedulable"],
        Rules::Secret => &["type"],
        Rules::Service => &["spec.clusterIP", "spec.type"],
        Rules::Event if resource.group.is_empty() => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        Rules::Event => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        Rules::ReplicaSet => &["status.replicas"],
        Rules::Endpoints
        | Rules::EndpointSlice
        | Rules::ConfigMap
        | Rules::ServiceAccount
        | Rules::PersistentVolumeClaim
        | Rules::StatefulSet
        | Rules::ControllerRevision
        | Rules::Deployment
        | Rules::CronJob
        | Rules::Job
        | Rules::Lease
        | Rules::PodDisruptionBudget
        | Rules::CustomResourceDefinition
        | Rules::Custom => &[],
    };
    if field == "metadata.name"
        || (field == "metadata.namespace" && (resource.namespaced || resource.rules != Rules::Custom))
    {
        return Ok(field.to_owned());
    }
    if offered.contains(&field) {
        return Ok(match field {
            "source" => "source.component".to_owned(),
            "reportingController" => "reportingComponent".to_owned(),
            _ => field.replacen("regarding.", "involvedObject.", 1),
        });
    }
    if version.selectable.iter().any(|path| path.strip_prefix('.') == Some(field)) {
        return Ok(field.to_owned());
    }
    Err(bad_request(if offered.is_empty() && resource.rules != Rules::Custom {
        format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {field}")
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operator_of_a_label_selector_is_understood() {
        let labels = json!({"app": "db", "tier": "back", "size": "5"});
        let selects = |text: &str| Labels::parse(text).unwrap().matches(Some(&labels));
        for yes in [
            "",
            "app=db",
            "app==db,tier!=front",
            "app in (web, db),tier notin (front)",
            "app",
            "!missing",
            "missing!=x",
            "size>4,size<6",
        ] {
            assert!(selects(yes), "{yes}");
        }
        for no in ["app=web", "app!=db", "app notin (db)", "missing", "!app", "missing=x", "size>5", "app>1"] {
            assert!(!selects(no), "{no}");
        }
    }

    #[test]
    fn a_selector_that_cannot_be_read_is_a_bad_request() {
        for text in ["a b", "x in (a", "x near (a)", "size>big", "=x"] {
            assert_eq!(Labels::parse(text).unwrap_err().code, 400, "{text}");
        }
    }

    #[test]
    fn an_object_selector_means_the_same_as_its_text() {
        let selector = json!({
            "matchLabels": {"app": "db"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["back"]},
                {"key": "gone", "operator": "DoesNotExist"},
            ],
        });
        let selector = Labels::from_object(&selector).unwrap();
        assert_eq!(selector, Labels::parse("app=db,tier in (back),!gone").unwrap());
    }
}
