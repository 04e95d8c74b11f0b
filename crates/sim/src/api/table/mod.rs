//! Tables: the columns of every kind, and an object's cells in them, as `kubectl get` shows them.
//!
//! The server decides what a person sees of an object; a client only lines the cells up. Columns of a priority above zero are
//! shown on demand (`-o wide`).

mod age;
mod custom;
mod network;
mod node;
mod path;
mod plain;
mod pod;
mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::custom::Columns as CustomColumns;

use super::object;
use super::resource::{Resource, Rules, Version};

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: i32,
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

const fn integer(name: &'static str) -> Column {
    Column { kind: "integer", ..text(name) }
}

const fn wide(name: &'static str) -> Column {
    Column { priority: 1, ..text(name) }
}

/// The column that tells which object it is; every table has one.
const NAME: Column = Column { format: "name", ..text("Name") };
const AGE: Column = text("Age");
/// What a cell says where there is nothing.
const NONE: &str = "<none>";

/// An object on its way into a row.
#[derive(Clone, Copy)]
struct Seen<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl<'a> Seen<'a> {
    fn text(&self, path: &[&str]) -> &'a str {
        object::text(self.object, path)
    }

    /// The text there, or the sign for nothing.
    fn text_or_none(&self, path: &[&str]) -> &'a str {
        or_none(self.text(path))
    }

    fn number(&self, path: &[&str]) -> i64 {
        object::integer(self.object, path).unwrap_or(0)
    }

    fn list(&self, path: &[&str]) -> &'a [Value] {
        list(self.object, path)
    }

    fn name(&self) -> &'a str {
        object::name(self.object)
    }

    fn age(&self) -> String {
        self.since(&["metadata", "creationTimestamp"])
    }

    fn since(&self, path: &[&str]) -> String {
        age::since(self.text(path), self.now)
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    object::at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// How many keys a map has.
fn size(value: &Value, path: &[&str]) -> usize {
    object::at(value, path).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

/// A cell per column.
type Cells = fn(Seen<'_>) -> Vec<Value>;

/// How a built-in kind is shown; none for custom resources, whose definitions say it.
fn layout(rules: Rules) -> Option<(&'static [Column], Cells)> {
    Some(match rules {
        Rules::Pod => (pod::COLUMNS, pod::cells),
        Rules::Node => (node::COLUMNS, node::cells),
        Rules::Service => (network::SERVICE, network::service),
        Rules::Endpoints => (network::ENDPOINTS, network::endpoints),
        Rules::EndpointSlice => (network::SLICE, network::slice),
        Rules::StatefulSet => (workload::STATEFUL_SET, workload::stateful_set),
        Rules::Deployment => (workload::DEPLOYMENT, workload::deployment),
        Rules::ReplicaSet => (workload::REPLICA_SET, workload::replica_set),
        Rules::CronJob => (workload::CRON_JOB, workload::cron_job),
        Rules::Job => (workload::JOB, workload::job),
        Rules::ControllerRevision => (workload::REVISION, workload::revision),
        Rules::PodDisruptionBudget => (workload::BUDGET, workload::budget),
        Rules::Namespace => (plain::NAMESPACE, plain::namespace),
        Rules::ConfigMap => (plain::CONFIG_MAP, plain::config_map),
        Rules::Secret => (plain::SECRET, plain::secret),
        Rules::ServiceAccount => (plain::SERVICE_ACCOUNT, plain::service_account),
        Rules::PersistentVolumeClaim => (plain::CLAIM, plain::claim),
        Rules::Lease => (plain::LEASE, plain::lease),
        Rules::Event => (plain::EVENT, plain::event),
        Rules::CustomResourceDefinition => (plain::DEFINITION, plain::definition),
        Rules::Custom => return None,
    })
}

/// The columns' definitions.
pub(crate) fn columns(resource: &Resource, version: &Version) -> Value {
    match layout(resource.rules) {
        Some((columns, _)) => definitions(columns),
        None => version.columns.definitions(),
    }
}

/// The columns of the `scale` part.
pub(crate) fn scale_columns() -> Value {
    definitions(workload::SCALE)
}

fn definitions(columns: &[Column]) -> Value {
    columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "format": column.format,
                "description": "",
                "priority": column.priority,
            })
        })
        .collect()
}

/// An object's row, without the object itself.
pub(crate) fn row(resource: &Resource, version: &Version, shown: &Value, now: Timestamp) -> Value {
    let seen = Seen { object: shown, now };
    let cells = match layout(resource.rules) {
        Some((_, cells)) => cells(seen),
        None => version.columns.cells(seen),
    };
    let mut row = json!({"cells": cells});
    if resource.rules == Rules::Pod
        && let Some(end) = pod::end(shown)
    {
        row["conditions"] = end;
    }
    row
}

/// The row of a `scale` part.
pub(crate) fn scale_row(scale: &Value, now: Timestamp) -> Value {
    json!({"cells": workload::scale(Seen { object: scale, now })})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::BUILT_IN;

    #[test]
    fn every_kind_fills_exactly_its_columns_even_when_the_object_is_empty() {
        for resource in BUILT_IN.iter() {
            let version = &resource.versions[0];
            let row = row(resource, version, &json!({}), crate::clock::EPOCH);
            let (cells, columns) = (row["cells"].as_array().unwrap().len(), columns(resource, version));
            assert_eq!(cells, columns.as_array().unwrap().len(), "{}", resource.id);
        }
    }
}
