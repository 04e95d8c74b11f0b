//! Who owns the fields that an upgrade writes, and what is known of those who do.

use std::{collections::BTreeSet, fmt};

use jiff::Timestamp;

/// The field manager of everything that Windlass writes on a StatefulSet.
pub const MANAGER: &str = "windlass";

/// Managers that write by `Update` what they wrote before, again and again: the loops of Argo CD (also by its older name), Flux, Rancher
/// Fleet and kapp. Whoever writes by `Apply` says that a field is theirs, and needs no entry here.
const LOOPS: &[&str] = &[
    "argocd-controller",
    "argocd-application-controller",
    "kustomize-controller",
    "helm-controller",
    "fleetagent",
    "kapp",
    "kapp-controller",
];

/// Who moves `replicas` without being asked: the HorizontalPodAutoscaler's controller, and KEDA.
const AUTOSCALERS: &[&str] = &["kube-controller-manager", "keda-operator"];

/// A field of the StatefulSet that an upgrade writes or counts on. Selectors are not among them: nobody can change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The image of the managed container, or of an init container that follows it.
    Image,
    /// `updateStrategy.rollingUpdate.partition`.
    Partition,
    /// The rest of `updateStrategy`.
    Strategy,
    /// `replicas`.
    Replicas,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Image => "the image",
            Self::Partition => "the partition",
            Self::Strategy => "the update strategy",
            Self::Replicas => "the replicas",
        })
    }
}

/// How a manager came to own a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
pub enum Operation {
    /// By server-side apply: it says that the field is its own.
    Apply,
    /// By any other write that changed it.
    Update,
}

/// A field manager, and what it owns of the fields that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub manager: String,
    /// How it wrote.
    pub operation: Operation,
    /// It wrote the scale and not the StatefulSet.
    pub scales: bool,
    /// When it last changed something, to the second.
    pub at: Option<Timestamp>,
    /// What it owns.
    pub fields: BTreeSet<Field>,
}

impl Owner {
    pub(crate) fn is_ours(&self) -> bool {
        self.manager == MANAGER
    }

    /// Whether it can be expected to write this field again by itself.
    pub(crate) fn writes_again(&self, field: Field) -> bool {
        let manager = self.manager.as_str();
        match field {
            Field::Image | Field::Partition | Field::Strategy => {
                self.operation == Operation::Apply || LOOPS.contains(&manager)
            }
            // Who keeps a number in Git never moves it by itself, and we never write it.
            Field::Replicas => self.scales && AUTOSCALERS.contains(&manager),
        }
    }

    /// What keeps it from writing what is ours, in its own words.
    pub(crate) fn way_out(&self) -> &'static str {
        match self.manager.as_str() {
            "argocd-controller" | "argocd-application-controller" => {
                "in the Argo CD Application, add ignoreDifferences for /spec/updateStrategy and the container image, and the sync option RespectIgnoreDifferences=true"
            }
            "kustomize-controller" => {
                "annotate the StatefulSet with kustomize.toolkit.fluxcd.io/ssa=Ignore; Flux then applies no change to it until you remove that"
            }
            "helm-controller" => {
                "in the HelmRelease, add spec.driftDetection.ignore for /spec/updateStrategy and the container image, and suspend it during the upgrade, because a Helm upgrade still writes them"
            }
            "helm" => "upgrade the Helm release only with the image and the update strategy that stand",
            "kube-controller-manager" | "keda-operator" => {
                "delete the autoscaler, or set its minReplicas equal to its maxReplicas during the upgrade"
            }
            manager if manager.starts_with("kubectl") => {
                "apply only manifests with the image and the update strategy that stand, and without --force-conflicts"
            }
            _ => "let it ignore the image and the update strategy",
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation: &str = self.operation.into();
        write!(f, "{} ({operation})", self.manager)
    }
}

/// Who owns what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// The object that controls the StatefulSet as a whole, as kind and name.
    pub controller: Option<String>,
    /// The managers of its fields.
    pub managers: Vec<Owner>,
}

impl Owners {
    /// Whether what stands there was written by us.
    pub(crate) fn is_ours(&self, field: Field) -> bool {
        self.managers.iter().any(|owner| owner.is_ours() && owner.fields.contains(&field))
    }

    /// Who wrote what stands there; none where we did, or nobody tells.
    pub(crate) fn writer(&self, field: Field) -> Option<&Owner> {
        let owners = self.managers.iter().filter(|owner| owner.fields.contains(&field));
        owners.max_by_key(|owner| owner.at).filter(|_| !self.is_ours(field))
    }
}
