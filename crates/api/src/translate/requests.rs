//! Requests: what they ask for, what they approved, and what was given up because of them.

use std::str::FromStr;

use windlass_plan::{
    Hold, MemberName, Reason, Version,
    strategy::known::{
        approval::{self, Approvals},
        request::{GivenUp, Requests},
        want::Target,
    },
};

use crate::{
    QuorumClusterSpec, QuorumClusterStatus,
    status::{
        Abandoned,
        gates::{ApprovalStatus, Question},
    },
    word::Written,
};

/// Whether this request was not answered yet.
pub fn is_fresh(asked: Option<&String>, handled: Option<&String>) -> bool {
    asked.is_some() && asked != handled
}

/// The requests that were not answered yet.
pub fn requests(spec: &QuorumClusterSpec, status: &QuorumClusterStatus) -> Requests {
    let (asked, handled) = (&spec.requests, &status.requests);
    Requests {
        retry: is_fresh(asked.retry.as_ref(), handled.retry.as_ref()),
        abort: is_fresh(asked.abort.as_ref(), handled.abort.as_ref()),
        rollback: is_fresh(asked.rollback.as_ref(), handled.rollback.as_ref()),
    }
}

/// What was given up. What can't be read is: nothing is begun again by a status that is not understood.
pub fn given_up(written: &Abandoned) -> Result<GivenUp, Hold> {
    let unreadable = |field: &str| Hold::new(Reason::InvalidSpec, format!("status.abandoned.{field} can't be read"));
    let version = Version::from_str(&written.version).map_err(|_| unreadable("version"))?;
    let outcome = written.outcome.known().ok_or_else(|| unreadable("outcome"))?;
    let (image, because) = (written.image.clone(), written.message.clone());
    Ok(GivenUp { target: Target { version, image }, outcome, because })
}

/// What was given up, for the status.
pub fn written_given_up(given_up: &GivenUp) -> Abandoned {
    Abandoned {
        version: given_up.target.version.to_string(),
        image: given_up.target.image.clone(),
        outcome: Written::Known(given_up.outcome),
        message: given_up.because.clone(),
    }
}

/// Where approvals stand. What can't be read was not approved, and is asked again.
pub fn approvals(spec: &QuorumClusterSpec, status: &QuorumClusterStatus) -> Approvals {
    let read = |written: &Question| {
        let version = Version::from_str(&written.target_version).ok()?;
        Some(approval::Question {
            target: Target { version, image: written.target_image.clone() },
            hand_over: written.hand_over.as_ref().map(MemberName::new),
        })
    };
    let written = status.approval.clone().unwrap_or_default();
    Approvals {
        fresh: is_fresh(spec.requests.approve.as_ref(), status.requests.approve.as_ref()),
        asked: written.asked.as_ref().and_then(read),
        granted: written.granted.iter().filter_map(read).collect(),
    }
}

/// Where approvals stand, for the status; none where there is nothing to say.
pub fn written_approvals(approvals: &Approvals) -> Option<ApprovalStatus> {
    let write = |question: &approval::Question| Question {
        target_version: question.target.version.to_string(),
        target_image: question.target.image.clone(),
        hand_over: question.hand_over.as_ref().map(ToString::to_string),
    };
    let status = ApprovalStatus {
        asked: approvals.asked.as_ref().map(write),
        granted: approvals.granted.iter().map(write).collect(),
    };
    (status != ApprovalStatus::default()).then_some(status)
}

#[cfg(test)]
mod tests {
    use windlass_plan::{
        MemberName,
        strategy::known::approval::{Approvals, Question},
    };

    use super::{QuorumClusterStatus, Target, written_approvals};

    #[test]
    fn approvals_are_read_back_as_they_were_written() {
        let question = Question {
            target: Target { version: "8.5.1".parse().unwrap(), image: "pd:v8.5.1".into() },
            hand_over: Some(MemberName::new("pd-0")),
        };
        let approvals = Approvals { fresh: true, asked: Some(question.clone()), granted: vec![question] };
        let mut status = QuorumClusterStatus { approval: written_approvals(&approvals), ..Default::default() };
        let asked =
            "workload: { statefulSet: pd, container: pd }\nsystem: { type: Pd }\nrequests: { approve: yes-please }";
        let asked = serde_saphyr::from_str(asked).unwrap();
        assert_eq!(super::approvals(&asked, &status), approvals);
        status.requests.approve = Some("yes-please".into());
        assert!(!super::approvals(&asked, &status).fresh, "handled");
        assert_eq!(written_approvals(&Approvals::default()), None);
    }
}
