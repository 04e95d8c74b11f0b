//! Upgrades of real applications on the real cluster, under load, with the things happening that happen.

mod application;
pub mod command;
mod control_plane;
mod etcd;
mod evidence;
mod facts;
mod layout;
mod openbao;
mod operator;
mod pd;
mod resource;
mod roster;
mod row;
mod run;
mod site;
mod stories;
mod trial;
mod wait;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use self::trial::Trial;
use crate::{applications::Pair, client::Application};

/// Who replaces pods of a StatefulSet.
const CONTROLLER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// How Windlass runs in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operators {
    /// Not at all: what Kubernetes does by itself.
    None,
    /// As pods, from the manifests that are shipped.
    Pods,
    /// As processes of this machine that can be killed and frozen, with the rights that are shipped.
    Local {
        /// How many compete.
        count: usize,
        /// How long a silent one keeps the Lease.
        lease_seconds: u64,
    },
}

/// Who may end pods, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletions {
    /// Every pod exactly once, by whoever has to.
    EachOnce,
    /// The scenario itself ends pods, or has them ended more often.
    Any,
}

/// Who writes the pod template, and how pods are replaced then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// Windlass, with the strategy that the application is usually laid out with.
    Windlass,
    /// Windlass, on a set that is laid out with OnDelete.
    WindlassOnDelete,
    /// Somebody else, with OnDelete also at rest: Windlass only replaces the pods.
    SomebodyElse,
}

/// One scenario.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub shows: &'static str,
    /// CI runs it.
    pub ci: bool,
    /// What is upgraded.
    pub application: Application,
    /// Windlass knows it only as docs/examples/http-etcd.yaml describes it.
    pub described: bool,
    /// Who writes the pod template.
    pub keeper: Keeper,
    /// Its members also listen with TLS, with one certificate for all names of a domain that is not the cluster's. etcd alone.
    pub secured: bool,
    /// How many members.
    pub replicas: usize,
    /// The ordinal that leads when it begins; none for whoever was elected.
    pub leader: Option<usize>,
    /// How Windlass runs.
    pub operators: Operators,
    /// Who may end pods.
    pub deletions: Deletions,
    /// The version that all members run at the end.
    pub ends_at: fn(&Pair) -> &str,
    /// What happens.
    run: for<'a> fn(&'a mut Trial<'_>) -> LocalBoxFuture<'a, Result<()>>,
}

impl Scenario {
    /// What most scenarios have in common: the plain upgrade of three members by the operator in pods.
    const fn usual(application: Application, leader: Option<usize>) -> Self {
        Self {
            name: "",
            shows: "",
            ci: false,
            application,
            described: false,
            keeper: Keeper::Windlass,
            secured: false,
            replicas: 3,
            leader,
            operators: Operators::Pods,
            deletions: Deletions::EachOnce,
            ends_at: |pair| &pair.new.version,
            run: |trial| Box::pin(stories::rolling::run(trial)),
        }
    }

    /// Who replaces pods in an upgrade: the operator itself where the set is laid out with OnDelete.
    pub fn replaced_by(&self) -> &'static str {
        match (self.keeper, self.application) {
            (Keeper::Windlass, Application::Etcd | Application::Pd) => CONTROLLER,
            (Keeper::Windlass, Application::OpenBao)
            | (
                Keeper::WindlassOnDelete | Keeper::SomebodyElse,
                Application::Etcd | Application::Pd | Application::OpenBao,
            ) => operator::USER,
        }
    }

    /// The same without Windlass.
    const fn baseline(name: &'static str, usual: &Self) -> Self {
        Self {
            name,
            shows: "the same change without Windlass: what a plain RollingUpdate does to the leader",
            operators: Operators::None,
            deletions: Deletions::Any,
            run: |trial| Box::pin(stories::baseline::run(trial)),
            ..*usual
        }
    }
}

/// All scenarios.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    etcd::SCENARIOS.iter().chain(openbao::SCENARIOS).chain(pd::SCENARIOS)
}

/// The scenario of this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    all().find(|scenario| scenario.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Operators, all};

    #[test]
    fn names_are_unique_and_fit_into_a_namespace() {
        let names: BTreeSet<&str> = all().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(names.iter().all(|name| name.len() <= 40
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')));
    }

    #[test]
    fn ci_has_the_operator_in_a_pod_and_as_a_process() {
        let ci: Vec<Operators> = all().filter(|scenario| scenario.ci).map(|scenario| scenario.operators).collect();
        assert!(ci.contains(&Operators::Pods));
        assert!(ci.iter().any(|operators| matches!(operators, Operators::Local { .. })));
    }
}
