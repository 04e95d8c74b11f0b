//! What is done and asked of PD.

use http::Method;

use super::{
    super::play::{self, ALL, Ask, Which, Who, alone, founding, get},
    Act, MEMBERS_PATH,
};

type Step = play::Step<Act>;
type Play = play::Play<Act>;

const HEALTH: &str = "/pd/api/v1/health";
const LEADER: &str = "/pd/api/v1/leader";
const READY: &str = "/pd/api/v2/ready";
const TRANSFER: &str = "/pd/api/v1/leader/transfer/$name";
/// Long enough for everything in a simulated cluster to be as it will stay.
const REST: Step = Step::Settle(30);

fn post(whom: Who, path: &'static str) -> Step {
    Step::Ask(Ask::post(whom, path, ""))
}

fn transfer(asked: Who, to: Who) -> Step {
    Step::Ask(Ask::post(asked, TRANSFER, "").about(to))
}

fn prefer(asked: Who, about: Who, body: &'static str) -> Step {
    Step::Ask(Ask::post(asked, "/pd/api/v1/members/name/$name", body).about(about))
}

/// What the adapter reads, which a member answers by itself.
fn look(whom: Who) -> Vec<Step> {
    vec![
        alone(whom, MEMBERS_PATH),
        alone(whom, HEALTH),
        alone(whom, READY),
        Step::Ask(Ask::post(whom, "/v3/maintenance/status", "{}").reads()),
    ]
}

/// Everything that a member tells, also what it asks the leader for.
fn look_closely(whom: Who) -> Vec<Step> {
    let mut steps = look(whom);
    steps.extend([MEMBERS_PATH, HEALTH, LEADER, "/pd/api/v1/version", "/pd/api/v1/ping"].map(|path| get(whom, path)));
    steps.extend([LEADER, "/pd/api/v1/version", "/pd/api/v1/ping"].map(|path| alone(whom, path)));
    steps
}

fn look_at_all() -> Vec<Step> {
    ALL.into_iter().flat_map(look_closely).collect()
}

fn found(which: Which) -> Vec<Step> {
    let mut steps: Vec<Step> = founding(which);
    steps.extend([REST, Step::Cast, Step::Act(Act::Bootstrap), REST]);
    steps.extend([transfer(Who::Leader, Who::One), REST, alone(Who::One, MEMBERS_PATH), Step::Cast]);
    steps
}

pub(super) fn all() -> Vec<Play> {
    vec![
        Play { name: "one version, the old one", steps: one_version(Which::Old) },
        Play { name: "one version, the new one", steps: one_version(Which::New) },
        Play { name: "from the old version to the new one", steps: upgrade() },
    ]
}

fn one_version(which: Which) -> Vec<Step> {
    let mut steps = found(which);
    steps.extend(look_at_all());
    steps.extend(ALL.map(|whom| get(whom, "/readyz")));
    // What is not there.
    steps.extend([
        get(Who::One, "/pd/api/v1/nowhere"),
        get(Who::One, "/pd/api/v2/nowhere"),
        get(Who::One, "/nowhere"),
        post(Who::Leader, "/pd/api/v1/leader/transfer/nobody"),
        post(Who::One, "/pd/api/v1/leader/transfer/nobody"),
        post(Who::Leader, "/pd/api/v1/leader/transfer/"),
        Step::Ask(Ask::new(Method::DELETE, Who::Leader, "/pd/api/v1/members/name/nobody")),
        Step::Ask(Ask::post(Who::Leader, "/pd/api/v1/members/name/nobody", r#"{"leader-priority":5}"#)),
    ]);
    // Priorities. The leader's own moves nobody.
    steps.extend([
        prefer(Who::Leader, Who::Leader, r#"{"leader-priority":"much"}"#),
        prefer(Who::One, Who::Leader, r#"{"leader-priority":5}"#),
        get(Who::One, MEMBERS_PATH),
        alone(Who::Other, MEMBERS_PATH),
        prefer(Who::One, Who::Leader, r#"{"leader-priority":0}"#),
        get(Who::One, MEMBERS_PATH),
    ]);
    // Handing over: to the leader itself, and there and back, asked of the leader and of another.
    steps.extend([transfer(Who::Leader, Who::Leader), transfer(Who::One, Who::Leader), REST]);
    steps.extend(ALL.into_iter().flat_map(look));
    steps.extend([transfer(Who::Leader, Who::One), REST]);
    steps.extend(ALL.into_iter().flat_map(look));
    steps.extend([transfer(Who::Other, Who::Leader), REST]);
    steps.extend(ALL.into_iter().flat_map(look));
    steps.extend([post(Who::Leader, "/pd/api/v1/leader/resign"), REST, Step::Cast]);
    steps.extend(look_at_all());
    // One that does not lead dies, and comes back.
    steps.extend([Step::Kill(Who::Other), REST]);
    steps.extend([Who::Leader, Who::One].into_iter().flat_map(look_closely));
    steps.extend([transfer(Who::Leader, Who::Other), transfer(Who::One, Who::Other), REST]);
    steps.extend([Who::Leader, Who::One].into_iter().flat_map(look));
    steps.extend([Step::Start(Who::Other, which), REST]);
    steps.extend(look_at_all());
    // The leader dies: with time to hand over, and without.
    for end in [Step::Stop(Who::Leader), Step::Kill(Who::Leader)] {
        steps.extend([end, REST, Step::Cast]);
        steps.extend([Who::Leader, Who::Other].into_iter().flat_map(look_closely));
        steps.extend([Step::Start(Who::One, which), REST]);
        steps.extend(look_at_all());
    }
    // The quorum is lost, and comes back.
    steps.extend([Step::Kill(Who::One), Step::Kill(Who::Other), REST]);
    steps.extend(look_closely(Who::Leader));
    steps.extend([transfer(Who::Leader, Who::One), post(Who::Leader, "/pd/api/v1/leader/resign")]);
    steps.extend([Step::Start(Who::One, which), Step::Start(Who::Other, which), REST, Step::Cast]);
    steps.extend(look_at_all());
    steps
}

/// Member by member, as the operator does it, and back.
fn upgrade() -> Vec<Step> {
    let replace = |who, which| [Step::Stop(who), Step::Settle(5), Step::Start(who, which), REST];
    let mut steps = found(Which::Old);
    steps.extend(replace(Who::Other, Which::New));
    steps.extend(look_at_all());
    steps.extend(replace(Who::Other, Which::Old));
    steps.extend(look_at_all());
    steps.extend(replace(Who::Other, Which::New));
    steps.extend(replace(Who::One, Which::New));
    steps.extend(look_at_all());
    steps.extend([transfer(Who::Leader, Who::Other), REST]);
    steps.extend(look_at_all());
    steps.extend(replace(Who::Leader, Which::New));
    steps.extend(look_at_all());
    steps
}
