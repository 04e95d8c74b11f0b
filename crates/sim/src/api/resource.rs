//! Which resources there are: the built-in ones in a table, the custom ones from their definitions.

use std::sync::{Arc, LazyLock};

use super::error::Named;
use super::schema::Schema;
use super::table::CustomColumns;
use super::types::{self, TypeRef};

/// Whose rules an object follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    Namespace,
    Node,
    Pod,
    Service,
    Endpoints,
    EndpointSlice,
    ConfigMap,
    Secret,
    ServiceAccount,
    PersistentVolumeClaim,
    Event,
    StatefulSet,
    ControllerRevision,
    Deployment,
    ReplicaSet,
    CronJob,
    Job,
    Lease,
    PodDisruptionBudget,
    CustomResourceDefinition,
    Custom,
}

/// Where an object's `scale` lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// One version of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) schema: Option<Arc<Schema>>,
    /// How objects are merged.
    pub(crate) merging: TypeRef,
    /// Paths, with their leading dot, that a field selector may name.
    pub(crate) selectable: Vec<String>,
    /// What a table shows of a custom resource.
    pub(crate) columns: CustomColumns,
}

/// One resource.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// As in [`Change::resource`](crate::journal::Change::resource).
    pub(crate) id: String,
    /// The id under which the objects are stored; differs where two groups serve the same objects.
    pub(crate) storage: String,
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) rules: Rules,
    pub(crate) versions: Vec<Version>,
    /// The version that objects are stored in.
    pub(crate) stored: String,
    /// Objects written before this revision were checked against an older schema and are defaulted again when read.
    pub(crate) schema_revision: u64,
    /// The generation of the definition that this was made from; 0 for built-in resources.
    pub(crate) definition_generation: i64,
}

impl Resource {
    pub(crate) fn id_of(group: &str, plural: &str) -> String {
        if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
    }

    /// For messages that name the resource.
    pub(crate) fn named(&self) -> Named<'_> {
        Named { group: &self.group, what: &self.plural }
    }

    /// For messages that name the kind.
    pub(crate) fn kind_named(&self) -> Named<'_> {
        // Events of both groups are the same kind inside.
        let group = if self.rules == Rules::Event { "" } else { &self.group };
        Named { group, what: &self.kind }
    }

    pub(crate) fn api_version(&self, version: &str) -> String {
        api_version(&self.group, version)
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Whether a PUT may leave out the resourceVersion.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        match self.rules {
            Rules::Lease | Rules::PodDisruptionBudget | Rules::CustomResourceDefinition | Rules::Custom => false,
            Rules::Namespace
            | Rules::Node
            | Rules::Pod
            | Rules::Service
            | Rules::Endpoints
            | Rules::EndpointSlice
            | Rules::ConfigMap
            | Rules::Secret
            | Rules::ServiceAccount
            | Rules::PersistentVolumeClaim
            | Rules::Event
            | Rules::StatefulSet
            | Rules::ControllerRevision
            | Rules::Deployment
            | Rules::ReplicaSet
            | Rules::CronJob
            | Rules::Job => true,
        }
    }

    /// Whether a PUT of a name that does not exist makes it.
    pub(crate) fn allows_create_on_update(&self) -> bool {
        matches!(self.rules, Rules::Lease | Rules::Event | Rules::Endpoints)
    }

    /// Whether a deletion answers with the object rather than with a bare success.
    pub(crate) fn returns_deleted_object(&self) -> bool {
        matches!(self.rules, Rules::Pod | Rules::Service | Rules::ServiceAccount | Rules::PersistentVolumeClaim)
    }

    /// The object's place in the storage, which shows in some messages.
    pub(crate) fn registry_key(&self, namespace: &str, name: &str) -> String {
        let place = match self.rules {
            Rules::Node => "minions".to_owned(),
            Rules::Service => "services/specs".to_owned(),
            Rules::Endpoints => "services/endpoints".to_owned(),
            Rules::CustomResourceDefinition | Rules::Custom => format!("{}/{}", self.group, self.plural),
            Rules::Namespace
            | Rules::Pod
            | Rules::EndpointSlice
            | Rules::ConfigMap
            | Rules::Secret
            | Rules::ServiceAccount
            | Rules::PersistentVolumeClaim
            | Rules::Event
            | Rules::StatefulSet
            | Rules::ControllerRevision
            | Rules::Deployment
            | Rules::ReplicaSet
            | Rules::CronJob
            | Rules::Job
            | Rules::Lease
            | Rules::PodDisruptionBudget => self.plural.clone(),
        };
        if namespace.is_empty() {
            format!("/registry/{place}/{name}")
        } else {
            format!("/registry/{place}/{namespace}/{name}")
        }
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// A kind that is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltInKind {
    /// Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl BuiltInKind {
    /// Group and version in one.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

/// The kinds that the embedded API knows without being told, that of an object's scale among them.
pub fn built_in_kinds() -> Vec<BuiltInKind> {
    let kind = |group: &str, version: &str, kind: &str| BuiltInKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    };
    let served = TABLE.iter().map(|row| kind(row.group, row.version, row.kind));
    served.chain([kind("autoscaling", "v1", "Scale")]).collect()
}

/// A row of the table of built-in resources.
#[expect(clippy::struct_excessive_bools, reason = "a table of independent properties")]
struct Row {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
    all: bool,
    namespaced: bool,
    status: bool,
    scale: bool,
    rules: Rules,
}

const fn row(
    version: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    rules: Rules,
) -> Row {
    Row {
        group: "",
        version,
        plural,
        singular,
        kind,
        short_names: &[],
        all: false,
        namespaced: true,
        status: false,
        scale: false,
        rules,
    }
}

const TABLE: &[Row] = &[
    Row { short_names: &["cm"], ..row("v1", "configmaps", "configmap", "ConfigMap", Rules::ConfigMap) },
    Row { short_names: &["ep"], ..row("v1", "endpoints", "endpoints", "Endpoints", Rules::Endpoints) },
    Row { short_names: &["ev"], ..row("v1", "events", "event", "Event", Rules::Event) },
    Row {
        short_names: &["ns"],
        namespaced: false,
        status: true,
        ..row("v1", "namespaces", "namespace", "Namespace", Rules::Namespace)
    },
    Row { short_names: &["no"], namespaced: false, status: true, ..row("v1", "nodes", "node", "Node", Rules::Node) },
    Row {
        short_names: &["pvc"],
        status: true,
        ..row(
            "v1",
            "persistentvolumeclaims",
            "persistentvolumeclaim",
            "PersistentVolumeClaim",
            Rules::PersistentVolumeClaim,
        )
    },
    Row { short_names: &["po"], all: true, status: true, ..row("v1", "pods", "pod", "Pod", Rules::Pod) },
    row("v1", "secrets", "secret", "Secret", Rules::Secret),
    Row {
        short_names: &["sa"],
        ..row("v1", "serviceaccounts", "serviceaccount", "ServiceAccount", Rules::ServiceAccount)
    },
    Row {
        short_names: &["svc"],
        all: true,
        status: true,
        ..row("v1", "services", "service", "Service", Rules::Service)
    },
    Row {
        group: "apps",
        ..row("v1", "controllerrevisions", "controllerrevision", "ControllerRevision", Rules::ControllerRevision)
    },
    Row {
        group: "apps",
        short_names: &["deploy"],
        all: true,
        status: true,
        scale: true,
        ..row("v1", "deployments", "deployment", "Deployment", Rules::Deployment)
    },
    Row {
        group: "apps",
        short_names: &["rs"],
        all: true,
        status: true,
        scale: true,
        ..row("v1", "replicasets", "replicaset", "ReplicaSet", Rules::ReplicaSet)
    },
    Row {
        group: "apps",
        short_names: &["sts"],
        all: true,
        status: true,
        scale: true,
        ..row("v1", "statefulsets", "statefulset", "StatefulSet", Rules::StatefulSet)
    },
    Row {
        group: "batch",
        short_names: &["cj"],
        all: true,
        status: true,
        ..row("v1", "cronjobs", "cronjob", "CronJob", Rules::CronJob)
    },
    Row { group: "batch", all: true, status: true, ..row("v1", "jobs", "job", "Job", Rules::Job) },
    Row { group: "coordination.k8s.io", ..row("v1", "leases", "lease", "Lease", Rules::Lease) },
    Row {
        group: "discovery.k8s.io",
        ..row("v1", "endpointslices", "endpointslice", "EndpointSlice", Rules::EndpointSlice)
    },
    Row { group: "events.k8s.io", short_names: &["ev"], ..row("v1", "events", "event", "Event", Rules::Event) },
    Row {
        group: "policy",
        short_names: &["pdb"],
        status: true,
        ..row("v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", Rules::PodDisruptionBudget)
    },
    Row {
        group: "apiextensions.k8s.io",
        short_names: &["crd", "crds"],
        namespaced: false,
        status: true,
        ..row(
            "v1",
            "customresourcedefinitions",
            "customresourcedefinition",
            "CustomResourceDefinition",
            Rules::CustomResourceDefinition,
        )
    },
];

fn resource(row: &Row) -> Resource {
    let scale = row.scale.then(|| ScalePaths {
        spec: ".spec.replicas".to_owned(),
        status: ".status.replicas".to_owned(),
        selector: None,
    });
    let mut categories: Vec<String> = Vec::new();
    if row.all {
        categories.push("all".to_owned());
    }
    if row.rules == Rules::CustomResourceDefinition {
        categories.push("api-extensions".to_owned());
    }
    let id = Resource::id_of(row.group, row.plural);
    Resource {
        storage: if row.rules == Rules::Event { "events".to_owned() } else { id.clone() },
        id,
        group: row.group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.singular.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        short_names: row.short_names.iter().map(|&name| name.to_owned()).collect(),
        categories,
        namespaced: row.namespaced,
        rules: row.rules,
        versions: vec![Version {
            name: row.version.to_owned(),
            served: true,
            status: row.status,
            scale,
            schema: None,
            merging: types::of_kind(&api_version(row.group, row.version), row.kind),
            selectable: Vec::new(),
            columns: CustomColumns::default(),
        }],
        stored: row.version.to_owned(),
        schema_revision: 0,
        definition_generation: 0,
    }
}

/// The resources that every cluster has; shared by all of them.
pub(crate) static BUILT_IN: LazyLock<Vec<Arc<Resource>>> =
    LazyLock::new(|| TABLE.iter().map(|row| Arc::new(resource(row))).collect());
