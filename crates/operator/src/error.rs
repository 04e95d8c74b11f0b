//! What goes wrong in a pass, and what that means for the next one.

use std::time::Duration;

use kube::core::Status;
use windlass_plan::{Hold, Reason};

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What was seen is not what is there any more: look again at once.
    Stale,
    /// The API server or the network: try again soon.
    Transient,
    /// We may not act any more.
    Lost,
    /// The API server refuses the request itself: a person must look.
    Refused,
}

impl Class {
    /// The metric's label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Transient => "transient",
            Self::Lost => "lost",
            Self::Refused => "refused",
        }
    }

    /// When to try again.
    pub fn retry(self) -> Duration {
        match self {
            Self::Stale => Duration::from_millis(200),
            Self::Transient => Duration::from_secs(2),
            Self::Lost => Duration::from_secs(1),
            Self::Refused => Duration::from_secs(15),
        }
    }
}

/// An error of a pass.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A read or a write failed at the API server.
    #[error("{verb} {what}")]
    Kubernetes {
        /// get, list, patch, …
        verb: &'static str,
        /// The object.
        what: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer within the deadline. A write may have happened or not.
    #[error("{verb} {what}: no answer in time")]
    NoAnswer {
        /// get, patch, …
        verb: &'static str,
        /// The object.
        what: String,
    },
    /// The lease is not ours any more.
    #[error("not leading any more")]
    Lost,
    /// What the decision was made from is too old to take a member down because of it.
    #[error("what was observed is {0:?} old, too old to take a member down")]
    EvidenceTooOld(Duration),
    /// The application refused or failed.
    #[error(transparent)]
    Application(#[from] windlass_systems::call::CallError),
    /// The application refused or failed, or could not be told as the resource describes it.
    #[error(transparent)]
    Described(#[from] windlass_systems::http::Unclear),
    /// What was written is not in what the API server says that it keeps.
    #[error(
        "{what}: the API server does not keep {field}, so its definitions are of another release; apply deploy/crds of this one"
    )]
    NotKept {
        /// The object.
        what: String,
        /// What is missing.
        field: &'static str,
    },
    /// What the step needs is gone.
    #[error("{0} is gone")]
    Gone(String),
    /// The step must wait, for a reason that only the API server could know.
    #[error("{0}")]
    Held(Hold),
}

impl Error {
    /// Wraps the client's error.
    pub fn kubernetes(verb: &'static str, what: impl Into<String>, source: kube::Error) -> Self {
        Self::Kubernetes { verb, what: what.into(), source: Box::new(source) }
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// What is asked for is of a past that the API server has forgotten.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// What the API server says where we have no right to it.
    pub fn refusal(&self) -> Option<&str> {
        self.status().filter(|status| status.code == 403).map(|status| status.message.as_str())
    }

    /// No such kind is served.
    pub fn is_unknown_kind(&self) -> bool {
        let Self::Kubernetes { source, .. } = self else { return false };
        matches!(source.as_ref(), kube::Error::Discovery(_))
    }

    /// Somebody else was faster.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// There is one of that name already.
    pub fn already_exists(&self) -> bool {
        self.is_conflict() && self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// The same request may pass the next moment, with nothing changed by us: a quota is contended for. One that is used up may stay so for ever, and
    /// nothing would be decided for as long.
    pub fn may_pass(&self) -> bool {
        self.is_conflict() && !self.already_exists()
    }

    /// The API server has too much to do, and did nothing.
    pub fn is_throttled(&self) -> bool {
        self.code() == Some(429)
    }

    /// What a PodDisruptionBudget had against an eviction, where that is why it was refused.
    pub fn refused_by_budget(&self, budget: &str) -> Option<Hold> {
        let status = self.status()?;
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        match (status.code, causes.find(|cause| cause.reason == "DisruptionBudget")) {
            // An API server that has too much to do answers with this code, too, and names no budget.
            (429, Some(cause)) => {
                let message = format!("PodDisruptionBudget {budget} lets no pod go now: {}", cause.message);
                Some(Hold::new(Reason::AwaitingBudget, message))
            }
            (500, _) if self.is_of_two_budgets() => {
                let message =
                    format!("another PodDisruptionBudget than {budget} covers the pod, so that no eviction passes");
                Some(Hold::new(Reason::DisruptionBudgetTooTight, message))
            }
            _ => None,
        }
    }

    /// The API server will not make this write as it is, and has not: by its rules, somebody's policy, or a size. Who may not write at all
    /// is no longer told about one object.
    pub fn is_denied(&self) -> bool {
        let Some(status) = self.status() else { return false };
        match status.code {
            400 | 403 | 405 | 413 | 415 | 422 => true,
            // Both come before anything is stored. The one is a webhook that should have been asked, the other etcd's limit.
            500 => ["failed calling webhook", "request is too large"].iter().any(|why| status.message.contains(why)),
            _ => false,
        }
    }

    /// Nobody said that the write did not happen: it may have, or may still.
    pub fn may_still_happen(&self) -> bool {
        match self {
            Self::NoAnswer { .. } => true,
            // 429 is said before anything is done, and so are two budgets; whatever else goes wrong in a server, or on the way to it, says
            // nothing.
            Self::Kubernetes { .. } => self.code().is_none_or(|code| code >= 500) && !self.is_of_two_budgets(),
            Self::Lost
            | Self::EvidenceTooOld(_)
            | Self::Application(_)
            | Self::Described(_)
            | Self::Gone(_)
            | Self::NotKept { .. }
            | Self::Held(_) => false,
        }
    }

    /// Two PodDisruptionBudgets cover the pod, and then no eviction passes.
    fn is_of_two_budgets(&self) -> bool {
        let says = |status: &Status| status.message.contains("more than one PodDisruptionBudget");
        self.code() == Some(500) && self.status().is_some_and(says)
    }

    /// What the API server answered; none if it did not.
    fn status(&self) -> Option<&Status> {
        let Self::Kubernetes { source, .. } = self else { return None };
        if let kube::Error::Api(status) = source.as_ref() { Some(status) } else { None }
    }

    fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// What it means.
    pub fn class(&self) -> Class {
        match self {
            Self::Kubernetes { .. } => match self.code() {
                Some(404 | 409 | 410) => Class::Stale,
                Some(400 | 401 | 403 | 405 | 415 | 422) => Class::Refused,
                // 429, 5xx, or no answer at all.
                Some(_) | None => Class::Transient,
            },
            Self::NoAnswer { .. } | Self::Application(_) | Self::Described(_) | Self::Held(_) => Class::Transient,
            Self::NotKept { .. } => Class::Refused,
            Self::Lost => Class::Lost,
            Self::EvidenceTooOld(_) | Self::Gone(_) => Class::Stale,
        }
    }

    /// What a person can do about it, where the application told.
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::Application(error) => Some(error.next_step()),
            Self::Kubernetes { .. }
            | Self::NoAnswer { .. }
            | Self::Lost
            | Self::NotKept { .. }
            | Self::EvidenceTooOld(_)
            | Self::Described(_)
            | Self::Gone(_)
            | Self::Held(_) => None,
        }
    }

    /// The whole story in one line.
    pub fn story(&self) -> String {
        let mut text = self.to_string();
        if let Some(status) = self.status().filter(|status| !status.message.is_empty()) {
            // The client's own words show the whole answer as a program has it.
            return format!("{text}: {}", status.message);
        }
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let more = error.to_string();
            if !text.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            source = error.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_plan::Reason;

    use super::Error;

    fn refused(code: u16, message: &str, cause: Option<&str>) -> Error {
        let cause = cause.map(|reason| {
            let message = "The disruption budget theirs needs 2 healthy pods and has 2 currently";
            json!({"reason": reason, "message": message})
        });
        let causes: Vec<Value> = cause.into_iter().collect();
        let answer = json!({"code": code, "message": message, "details": {"causes": causes}});
        let status: Status = serde_json::from_value(answer).unwrap();
        Error::kubernetes("evict", "pods/tikv/pd-0", kube::Error::Api(Box::new(status)))
    }

    #[rstest]
    #[case::used_up(429, "Cannot evict pod", Some("DisruptionBudget"), Some(Reason::AwaitingBudget))]
    #[case::two(
        500,
        "This pod has more than one PodDisruptionBudget, which is not supported",
        None,
        Some(Reason::DisruptionBudgetTooTight)
    )]
    #[case::too_much_to_do(429, "too many requests", None, None)]
    #[case::broken(500, "etcd is gone", None, None)]
    #[case::another_pod(409, "Precondition failed", None, None)]
    fn a_budget_that_refuses_is_no_failure(
        #[case] code: u16,
        #[case] message: &str,
        #[case] cause: Option<&str>,
        #[case] expected: Option<Reason>,
    ) {
        let hold = refused(code, message, cause).refused_by_budget("theirs");
        assert_eq!(hold.as_ref().map(|hold| hold.reason), expected);
        assert!(hold.is_none_or(|hold| hold.message.contains("theirs")));
    }

    /// A take-over is not done with what a late request of the predecessor's may still make (H1).
    #[rstest]
    #[case::a_quota_is_contended_for(409, "Operation cannot be fulfilled on resourcequotas \"jobs\"", true)]
    #[case::a_quota_is_used_up(403, "jobs.batch \"x\" is forbidden: exceeded quota: jobs", false)]
    #[case::nobody_may(403, "jobs.batch is forbidden: User \"windlass\" cannot create resource", false)]
    #[case::nobody_ever(422, "Job.batch \"x\" is invalid", false)]
    fn what_is_refused_for_now_may_pass_later(#[case] code: u16, #[case] message: &str, #[case] expected: bool) {
        assert_eq!(refused(code, message, None).may_pass(), expected);
    }
}
