//! Numbers that a deployment may want to change. Their relations matter more than their values: see [`Settings::check`].

use std::{collections::BTreeSet, time::Duration};

use crate::members::account;

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who this process is: the pod's name plus something random, never the same for two processes.
    pub identity: String,
    /// The namespace of the Lease.
    pub lease_namespace: String,
    /// The Lease's name.
    pub lease_name: String,
    /// How long a holder that says nothing keeps the lease.
    pub lease_duration: Duration,
    /// How long the holder believes in its own lease after the last renewal that succeeded.
    pub renew_deadline: Duration,
    /// How often the lease is renewed, or tried for.
    pub retry_period: Duration,
    /// How long we wait for an answer to a read.
    pub read_deadline: Duration,
    /// How long we wait for an answer to a write.
    pub write_deadline: Duration,
    /// How long the API server may work on one write: its `timeout` parameter.
    pub longest_write: Duration,
    /// How old an observation may be when a member is taken down because of it.
    pub evidence_age: Duration,
    /// How often a resource at rest is looked at.
    pub idle_recheck: Duration,
    /// How long a watch may say nothing before it is not believed any more and begins again with a list. Bookmarks come once a minute.
    pub watch_silence: Duration,
    /// How many resources are worked on at once.
    pub concurrency: usize,
    /// The one namespace to look at; all if none.
    pub namespace: Option<String>,
    /// Nodes are not looked at, for an operator that may not read them.
    pub ignore_nodes: bool,
    /// The image of executor Jobs, where a resource names none.
    pub executor_image: Option<String>,
    /// Images that a resource may name for them, or repositories with all their tags (H41).
    pub allowed_executor_images: Vec<String>,
    /// Services that gates may ask from every namespace: as `NAMESPACE/NAME:PORT` whatever they like, as `NAMESPACE/NAME` queries alone.
    pub allowed_services: BTreeSet<String>,
    /// Namespaces in which gates of ServiceImages may ask (H41).
    pub allowed_gates: BTreeSet<String>,
    /// QuorumClusters are looked after only where the API server asks whether their author may patch the StatefulSet (H41).
    pub quorums_by_author: bool,
    /// Kinds whose resources ServiceImages may change, as `GROUP/KIND`, or `GROUP/KIND:FIELD` for that field alone (H41).
    pub allowed_targets: BTreeSet<String>,
    /// And those that their author may change, where the API server asks for that (H41).
    pub targets_by_author: bool,
    /// How many resources of a fleet are written at once, at most.
    pub stamp_concurrency: usize,
    /// Where tokens to log in to OpenBao and Vault come from.
    pub login_tokens: account::Tokens,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            identity: String::from("windlass"),
            lease_namespace: String::from("windlass-system"),
            lease_name: String::from("windlass"),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            read_deadline: Duration::from_secs(10),
            write_deadline: Duration::from_secs(5),
            longest_write: Duration::from_secs(10),
            evidence_age: Duration::from_secs(5),
            idle_recheck: Duration::from_secs(30),
            watch_silence: Duration::from_mins(2),
            concurrency: 16,
            namespace: None,
            ignore_nodes: false,
            executor_image: None,
            allowed_executor_images: Vec::new(),
            allowed_services: BTreeSet::new(),
            allowed_gates: BTreeSet::new(),
            quorums_by_author: false,
            allowed_targets: BTreeSet::new(),
            targets_by_author: false,
            stamp_concurrency: 16,
            login_tokens: account::Tokens::shipped(),
        }
    }
}

impl Settings {
    /// How long whoever is asked may take to answer, all side by side: a part of the age that evidence may have, or one who does not answer
    /// would keep every step from being taken, also the one that replaces it.
    pub fn patience(&self) -> Duration {
        (self.evidence_age * 4 / 5).max(Duration::from_secs(1))
    }

    /// What makes these settings unsafe, if anything.
    pub fn check(&self) -> Result<(), String> {
        if self.renew_deadline >= self.lease_duration {
            return Err("the renew deadline must be shorter than the lease's duration".into());
        }
        if self.retry_period >= self.renew_deadline {
            return Err("the retry period must be shorter than the renew deadline".into());
        }
        if self.write_deadline >= self.renew_deadline {
            return Err("the write deadline must be shorter than the renew deadline".into());
        }
        if self.watch_silence <= Duration::from_mins(1) {
            return Err(
                "a watch must be allowed to say nothing for more than a minute: bookmarks come once a minute".into()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn the_defaults_are_safe() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn a_holder_that_outlives_its_lease_is_refused() {
        let settings = Settings { renew_deadline: Settings::default().lease_duration, ..Settings::default() };
        assert!(settings.check().is_err());
    }

    #[test]
    fn a_watch_that_is_merely_quiet_is_believed() {
        let settings = Settings { watch_silence: std::time::Duration::from_mins(1), ..Settings::default() };
        assert!(settings.check().is_err());
    }
}
