//! The new image on the nodes before anybody stops. Jobs pull it, one for each node, outside of the operator (H6); here is decided when
//! they are asked for, and what their outcome means.
//!
//! ```text
//!   everything else lets the next member go ─▶ PullImage (the nodes that lack a Job) ─▶ pulled everywhere ─▶ on
//!                                                   ▲                                   └▶ not on one of them: a hold that names it
//!                                                   └─ the Job is gone, or a person says retry
//! ```
//! It is a gate like the others: asked before anything is written for a new target, and before every member that is not replaced yet. One
//! that moved to another node meanwhile is asked about there. A way back leads to an image that ran on these nodes, and waits for nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    bug::{self, Bug},
    fact::Fact,
    gate::Outcome,
    hold::Hold,
    reason::Reason,
    strategy::known::{
        ask::Ask,
        decision::{Decision, SOON, halt, wait},
        pulls::{Pull, Pulls},
        seen::Seen,
        step::{JobStep, Step},
        want::{Target, Want},
    },
};

/// The gate's name.
pub const NAME: &str = "ImagePulled";

/// So many nodes are told with what is wrong with them.
const TOLD: usize = 3;

/// The image is on every node that needs it, or nobody asked for that.
pub(crate) fn pulled(ask: &impl Ask) -> Outcome {
    let Some(deadline) = ask.want().pre_pull else { return Outcome::Pass };
    if ask.needs_no_pull() {
        return Outcome::Pass;
    }
    match of(&ask.target().image, ask.seen()) {
        Ok(pulls) => objection(pulls, deadline, ask.now()).map_or(Outcome::Pass, Outcome::Hold),
        Err(hold) => Outcome::Unknown(hold),
    }
}

/// What is known of this image.
fn of<'a>(image: &str, seen: &'a Seen) -> Result<&'a Pulls, Hold> {
    let unknown = |why: &str| {
        let message = format!("whether image {image} is on the nodes under the members is not known: {why}");
        Hold::new(Reason::AwaitingImage, message)
    };
    match &seen.pulls {
        Fact::Known(pulls) if pulls.image == image => Ok(pulls),
        Fact::Known(pulls) => Err(unknown(&format!("they were asked for {}", pulls.image))),
        Fact::Unknown(why) => Err(unknown(why)),
    }
}

/// What speaks against going on, the worst first.
fn objection(pulls: &Pulls, deadline: Duration, now: Timestamp) -> Option<Hold> {
    let Pulls { image, nodes } = pulls;
    let mut told = Vec::new();
    let mut awaited = Vec::new();
    for (node, pull) in nodes {
        match pull {
            Pull::Done => {}
            Pull::Failed(_) | Pull::Running { trouble: Some(_), .. } if bug::active(Bug::FailedPullCounts) => {}
            Pull::Failed(why) | Pull::Running { trouble: Some(why), .. } => told.push(format!("node {node}: {why}")),
            Pull::Running { since, trouble: None } if is_overdue(*since, deadline, now) => {
                let took = SignedDuration::try_from(deadline).unwrap_or(SignedDuration::MAX);
                told.push(format!("node {node}: it was asked for more than {took:#} ago and is not there"));
            }
            Pull::Running { .. } | Pull::Missing => awaited.push(node.as_str()),
        }
    }
    if !told.is_empty() {
        let more = told.len().saturating_sub(TOLD);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let told: Vec<String> = told.into_iter().take(TOLD).collect();
        let message = format!("image {image} can't be pulled on {}{more}", told.join("; on "));
        return Some(Hold::new(Reason::ImageNotPullable, message));
    }
    let message = || format!("image {image} is not on {} yet", awaited.join(", "));
    (!awaited.is_empty()).then(|| Hold::new(Reason::AwaitingImage, message()))
}

/// What to do about a hold of this gate; none where another one holds.
pub(crate) fn next<A: Step>(
    want: &Want,
    seen: &Seen,
    target: &Target,
    hold: &Hold,
    now: Timestamp,
) -> Option<Decision<A>> {
    if !matches!(hold.reason, Reason::AwaitingImage | Reason::ImageNotPullable) {
        return None;
    }
    let (Some(deadline), Ok(pulls)) = (want.pre_pull, of(&target.image, seen)) else {
        return Some(wait(hold.clone(), SOON));
    };
    let missing = pulls.nodes.iter().filter(|(_, pull)| **pull == Pull::Missing);
    let missing: Vec<String> = missing.map(|(node, _)| node.clone()).collect();
    if !missing.is_empty() {
        return Some(Decision::Act(JobStep::PullImage { image: pulls.image.clone(), nodes: missing }.into()));
    }
    let given_up = |pull: &Pull| match pull {
        Pull::Failed(_) => true,
        Pull::Running { since, .. } => is_overdue(*since, deadline, now),
        Pull::Missing | Pull::Done => false,
    };
    // A registry that is slow to replicate or limits its rate looks like one that lacks the image: only time tells.
    let stalls = pulls.nodes.values().any(given_up);
    Some(if stalls { halt(hold.clone()) } else { wait(hold.clone(), SOON) })
}

/// A clock that was set back ends nothing.
fn is_overdue(since: Timestamp, deadline: Duration, now: Timestamp) -> bool {
    now >= since && now.duration_since(since).unsigned_abs() >= deadline
}
