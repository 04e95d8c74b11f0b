//! What a write doesn't own though it sent it: the parts that the server sets back, and the metadata that is the server's.

use std::sync::LazyLock;

use super::super::fields::FieldSet;
use super::super::resource::Rules;

/// Which address of an object was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    None,
    Status,
    Scale,
    Finalize,
}

impl Subresource {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalize => "finalize",
        }
    }
}

static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_names(&[&["status"]]));
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_names(&[&["spec"]]));
static POD_STATUS: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_names(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
});
static DEPLOYMENT_STATUS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_names(&[&["spec"], &["metadata", "labels"]]));
static DEFINITION_STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_names(&[&["spec"], &["metadata"]]));

/// What the server sets back at this kind of write.
pub(super) fn fields(rules: Rules, has_status: bool, part: Subresource) -> &'static FieldSet {
    match (part, rules) {
        (Subresource::None | Subresource::Finalize, _) if has_status => &STATUS,
        (Subresource::None | Subresource::Finalize | Subresource::Scale, _) => &NOTHING,
        (Subresource::Status, Rules::Pod) => &POD_STATUS,
        (Subresource::Status, Rules::Deployment) => &DEPLOYMENT_STATUS,
        (Subresource::Status, Rules::CustomResourceDefinition) => &DEFINITION_STATUS,
        (Subresource::Status, _) => &SPEC,
    }
}

/// The metadata that nobody manages.
pub(super) static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_names(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});
