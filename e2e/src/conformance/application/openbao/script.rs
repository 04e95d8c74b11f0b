//! What is done and asked of OpenBao.

use http::Method;

use super::{
    super::play::{self, ALL, Ask, Token, Which, Who, alone, founding, get},
    Act,
};

type Step = play::Step<Act>;
type Play = play::Play<Act>;

const HEALTH: &str = "/v1/sys/health";
const LEADER: &str = "/v1/sys/leader";
const SEAL: &str = "/v1/sys/seal-status";
const CONFIGURATION: &str = "/v1/sys/storage/raft/configuration";
const AUTOPILOT: &str = "/v1/sys/storage/raft/autopilot/state";
const SNAPSHOT: &str = "/v1/sys/storage/raft/snapshot";
const STEP_DOWN: &str = "/v1/sys/step-down";
/// Long enough for everything in a simulated cluster to be as it will stay.
const REST: Step = Step::Settle(60);

fn step_down(whom: Who) -> Ask {
    Ask::new(Method::PUT, whom, STEP_DOWN)
}

/// Everything that a member tells.
fn look(whom: Who) -> Vec<Step> {
    [HEALTH, LEADER, SEAL, CONFIGURATION, AUTOPILOT].map(|path| get(whom, path)).to_vec()
}

fn look_at_all() -> Vec<Step> {
    ALL.into_iter().flat_map(look).collect()
}

/// What a member tells that takes no part.
fn look_at_outsider(whom: Who) -> Vec<Step> {
    let mut steps = look(whom);
    steps.extend([
        get(whom, "/v1/sys/health?uninitcode=299&sealedcode=298"),
        get(whom, "/v1/sys/health?standbyok=true"),
        Step::Ask(Ask::new(Method::HEAD, whom, HEALTH)),
        get(whom, SNAPSHOT),
        get(whom, "/v1/nowhere"),
        Step::Ask(step_down(whom)),
        Step::Ask(Ask::post(whom, "/v1/auth/kubernetes/login", r#"{"role":"upgrade","jwt":"e30.e30.x"}"#)),
    ]);
    steps
}

fn found(which: Which) -> Vec<Step> {
    let mut steps: Vec<Step> = founding(which);
    steps.extend([Step::Act(Act::Initialise), REST, Step::Cast, Step::Sign(Token::Given)]);
    steps
}

/// Another one becomes active, and the roles change.
fn another() -> [Step; 3] {
    [get(Who::Leader, "/v1/sys/health"), Step::Cast, REST]
}

pub(super) fn all() -> Vec<Play> {
    vec![
        Play { name: "one version, the old one", steps: one_version(Which::Old) },
        Play { name: "one version, the new one", steps: one_version(Which::New) },
        Play { name: "unsealed by hand, the old one", steps: by_hand(Which::Old) },
        Play { name: "unsealed by hand, the new one", steps: by_hand(Which::New) },
        Play { name: "from the old version to the new one", steps: upgrade() },
    ]
}

fn one_version(which: Which) -> Vec<Step> {
    let mut steps = vec![Step::Start(Who::Founding(0), which)];
    steps.extend(look_at_outsider(Who::Founding(0)));
    steps.extend([Step::Start(Who::Founding(1), which), Step::Start(Who::Founding(2), which)]);
    steps.extend([Step::Act(Act::Initialise), REST, Step::Cast, Step::Sign(Token::Given)]);
    steps.extend(look_at_all());
    steps.extend(questions());
    // Stepping down, asked of the active one and of another.
    steps.push(Step::Ask(step_down(Who::Leader).alone()));
    steps.push(Step::Settle(30));
    steps.extend(another());
    steps.extend(look_at_all());
    steps.push(Step::Ask(step_down(Who::Other)));
    steps.push(Step::Settle(30));
    steps.extend(another());
    steps.extend(look_at_all());
    // One that does not lead dies, and comes back.
    steps.extend([Step::Kill(Who::Other), REST]);
    steps.extend([Who::Leader, Who::One].into_iter().flat_map(look));
    steps.extend([Step::Start(Who::Other, which), REST]);
    steps.extend(look_at_all());
    // The leader dies: with time to hand over, and without.
    for end in [Step::Stop(Who::Leader), Step::Kill(Who::Leader)] {
        steps.extend([end, Step::Settle(30), Step::Cast, REST]);
        steps.extend([Who::Leader, Who::Other].into_iter().flat_map(look));
        steps.extend([Step::Start(Who::One, which), REST]);
        steps.extend(look_at_all());
    }
    // The quorum is lost, and comes back.
    steps.extend([Step::Kill(Who::One), Step::Kill(Who::Other), REST]);
    steps.extend(look(Who::Leader));
    steps.extend([alone(Who::Leader, CONFIGURATION), alone(Who::Leader, AUTOPILOT)]);
    steps.push(Step::Ask(Ask::get(Who::Leader, SNAPSHOT).code_only()));
    steps.push(Step::Ask(step_down(Who::Leader)));
    steps.extend([Step::Start(Who::One, which), Step::Start(Who::Other, which), REST, Step::Cast]);
    steps.extend(look_at_all());
    steps
}

/// Who may ask what, and of whom.
fn questions() -> Vec<Step> {
    let mut steps = Vec::new();
    for token in [Token::None, Token::Invented] {
        steps.push(Step::Sign(token));
        for whom in [Who::Leader, Who::One] {
            steps.extend([CONFIGURATION, AUTOPILOT, SNAPSHOT].map(|path| get(whom, path)));
            steps.extend([CONFIGURATION, AUTOPILOT].map(|path| alone(whom, path)));
            steps.extend([Step::Ask(step_down(whom)), Step::Ask(step_down(whom).alone())]);
            steps.extend([HEALTH, LEADER, SEAL, "/v1/nowhere"].map(|path| get(whom, path)));
        }
    }
    steps.push(Step::Sign(Token::Given));
    for whom in [Who::Leader, Who::One] {
        steps.extend([HEALTH, LEADER, CONFIGURATION, AUTOPILOT, "/v1/nowhere"].map(|path| alone(whom, path)));
        steps.push(Step::Ask(Ask::get(whom, SNAPSHOT).code_only()));
        steps.push(Step::Ask(Ask::new(Method::HEAD, whom, HEALTH)));
        steps.extend(
            [
                "/v1/sys/health?standbyok=true",
                "/v1/sys/health?standbyok",
                "/v1/sys/health?standbyok=well",
                "/v1/sys/health?perfstandbyok=true",
                "/v1/sys/health?standbycode=299&activecode=298",
                "/v1/sys/health?sealedcode=well",
                "/v1/nowhere",
                "/nowhere",
            ]
            .map(|path| get(whom, path)),
        );
    }
    steps.push(Step::Ask(Ask::get(Who::One, SNAPSHOT).alone().code_only()));
    // Only the active one takes this for itself.
    steps.push(Step::Ask(step_down(Who::One).alone()));
    steps.push(Step::Ask(Ask::post(Who::One, "/v1/sys/step-up", "{}")));
    steps
}

/// Members that stay sealed until somebody unseals them.
fn by_hand(which: Which) -> Vec<Step> {
    let mut steps = vec![Step::Act(Act::ByHand)];
    steps.extend((0..3).map(|number| Step::Start(Who::Founding(number), which)));
    steps.extend(look_at_outsider(Who::Founding(0)));
    steps.push(Step::Act(Act::Initialise));
    steps.extend((0..3).map(|number| Step::Act(Act::Unseal(Who::Founding(number)))));
    steps.extend([REST, Step::Cast, Step::Sign(Token::Given)]);
    steps.extend(look_at_all());
    // One that does not lead comes back sealed, and has no part in anything.
    steps.extend([Step::Kill(Who::Other), Step::Start(Who::Other, which), REST]);
    steps.extend(look_at_outsider(Who::Other));
    steps.extend([Who::Leader, Who::One].into_iter().flat_map(look));
    steps.extend([Step::Kill(Who::One), Step::Start(Who::One, which), REST]);
    steps.extend(look(Who::Leader));
    steps.extend(look_at_outsider(Who::One));
    steps.extend([Step::Act(Act::Unseal(Who::One)), REST, Step::Cast]);
    steps.extend([Who::Leader, Who::One].into_iter().flat_map(look));
    steps.extend([Step::Act(Act::Unseal(Who::Other)), REST, Step::Cast]);
    steps.extend(look_at_all());
    steps
}

/// Member by member, as the operator does it, and back as far as it goes.
fn upgrade() -> Vec<Step> {
    let replace = |who, which| [Step::Stop(who), Step::Settle(10), Step::Start(who, which), REST];
    let mut steps = found(Which::Old);
    steps.extend(replace(Who::Other, Which::New));
    steps.extend(look_at_all());
    steps.extend(replace(Who::Other, Which::Old));
    steps.extend(look_at_all());
    steps.extend(replace(Who::Other, Which::New));
    steps.extend(replace(Who::One, Which::New));
    steps.extend(look_at_all());
    steps.push(Step::Ask(step_down(Who::Leader).alone()));
    steps.push(Step::Settle(30));
    steps.extend(another());
    steps.extend(look_at_all());
    // Who led before is the first of the others now.
    steps.extend(replace(Who::One, Which::New));
    steps.extend(look_at_all());
    steps
}
