//! What an apply is told when it would change what others manage.

use kube::core::Status;
use kube::core::response::StatusCause;
use serde_json::json;

use super::super::error;
use super::super::fields::FieldSet;
use super::entries::{Id, Operation};

/// The fields that the apply would take from others.
#[derive(Clone, Debug)]
pub(super) struct Conflicts(Vec<(Id, FieldSet)>);

impl Conflicts {
    /// None where nobody loses anything.
    pub(super) fn new(mut found: Vec<(Id, FieldSet)>) -> Option<Self> {
        found.retain(|(_, fields)| !fields.is_empty());
        found.sort_by_cached_key(|(id, _)| id.sorted_by());
        (!found.is_empty()).then_some(Self(found))
    }

    /// Those that are left when these fields don't count.
    pub(super) fn without(&self, fields: &FieldSet) -> Option<Self> {
        let mut left = self.0.clone();
        for (_, conflicting) in &mut left {
            conflicting.subtract(fields);
        }
        Self::new(left)
    }

    pub(super) fn refusal(&self) -> Box<Status> {
        let paths: Vec<(&Id, Vec<String>)> = self
            .0
            .iter()
            .map(|(id, fields)| (id, fields.paths().iter().map(|path| FieldSet::show(path)).collect()))
            .collect();
        let count: usize = paths.iter().map(|(_, paths)| paths.len()).sum();
        let cause = |id: &Id, path: &String| StatusCause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", shown(id)),
            field: path.clone(),
        };
        let causes = paths.iter().flat_map(|(id, paths)| paths.iter().map(|path| cause(id, path))).collect();
        let message = match paths.as_slice() {
            [(id, only)] if count == 1 => {
                format!("Apply failed with 1 conflict: conflict with {}: {}", shown(id), only.concat())
            }
            many => {
                let lines = many.iter().flat_map(|(id, paths)| {
                    let head = format!("conflicts with {}:", shown(id));
                    std::iter::once(head).chain(paths.iter().map(|path| format!("- {path}")))
                });
                format!("Apply failed with {count} conflicts: {}", lines.collect::<Vec<_>>().join("\n"))
            }
        };
        error::apply_conflict(message, causes)
    }
}

fn shown(id: &Id) -> String {
    let manager = json!(id.manager);
    let part = match id.subresource.as_str() {
        "" => String::new(),
        part => format!(" with subresource {}", json!(part)),
    };
    match id.operation {
        Operation::Apply => format!("{manager}{part}"),
        Operation::Update => format!("{manager}{part} using {}", id.api_version),
    }
}
