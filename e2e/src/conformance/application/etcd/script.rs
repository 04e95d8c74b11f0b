//! What is done and asked of etcd.

use std::convert::Infallible;

use super::super::play::{self, ALL, Ask, Token, Which, Who, founding, get};

type Step = play::Step<Infallible>;
type Play = play::Play<Infallible>;

const STATUS: &str = "/v3/maintenance/status";
const LIST: &str = "/v3/cluster/member/list";
const TRANSFER: &str = "/v3/maintenance/transfer-leadership";
const LOCAL: &str = r#"{"linearizable":false}"#;
const LINEAR: &str = r#"{"linearizable":true}"#;

fn post(whom: Who, path: &'static str, body: &'static str) -> Step {
    Step::Ask(Ask::post(whom, path, body))
}

fn status(whom: Who) -> Step {
    Step::Ask(Ask::post(whom, STATUS, "{}").reads())
}

fn list(whom: Who, how: &'static str) -> Step {
    Step::Ask(Ask::post(whom, LIST, how).reads())
}

fn transfer(asked: Who, to: Who) -> Step {
    Step::Ask(Ask::post(asked, TRANSFER, r#"{"targetID":"$id"}"#).about(to))
}

fn add_learner(asked: Who) -> Step {
    let add = Ask::post(asked, "/v3/cluster/member/add", r#"{"peerURLs":["$url"],"isLearner":true}"#);
    Step::Ask(add.about(Who::Later))
}

/// Everything that a member tells of itself.
fn look(whom: Who) -> Vec<Step> {
    vec![status(whom), list(whom, LOCAL), get(whom, "/health"), get(whom, "/readyz"), get(whom, "/version")]
}

fn found(which: Which) -> Vec<Step> {
    let mut steps: Vec<Step> = founding(which);
    steps.extend([Step::Wait(10), Step::Cast]);
    steps
}

pub(super) fn all() -> Vec<Play> {
    vec![
        Play { name: "one version, the old one", steps: one_version(Which::Old) },
        Play { name: "one version, the new one", steps: one_version(Which::New) },
        Play { name: "from the old version to the new one", steps: upgrade() },
        Play { name: "authentication, the old one", steps: authentication(Which::Old) },
        Play { name: "authentication, the new one", steps: authentication(Which::New) },
    ]
}

/// Users and what they may, and members that forget tokens.
fn authentication(which: Which) -> Vec<Step> {
    let auth = |path, body| post(Who::One, path, body);
    let log_in = |body| auth("/v3/auth/authenticate", body);
    let mut steps = found(which);
    steps.extend([
        log_in(r#"{"name":"root","password":"right"}"#),
        auth("/v3/auth/enable", "{}"),
        auth("/v3/auth/user/add", r#"{"name":"root","password":"right"}"#),
        auth("/v3/auth/user/add", r#"{"name":"root","password":"right"}"#),
        auth("/v3/auth/user/add", r#"{"name":"guest","password":"guest"}"#),
        auth("/v3/auth/enable", "{}"),
        auth("/v3/auth/user/grant", r#"{"user":"nobody","role":"root"}"#),
        auth("/v3/auth/user/grant", r#"{"user":"guest","role":"readers"}"#),
        auth("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
        auth("/v3/auth/enable", "{}"),
        Step::Wait(2),
    ]);
    // Nobody in particular.
    steps.extend(look_at_all());
    steps.extend([transfer(Who::Leader, Who::One), auth("/v3/auth/user/add", r#"{"name":"x","password":"x"}"#)]);
    // Nobody who exists.
    steps.push(Step::Sign(Token::Invented));
    steps.extend([status(Who::One), list(Who::One, LOCAL), transfer(Who::Leader, Who::One)]);
    steps.push(Step::Sign(Token::None));
    steps.extend([
        log_in(r#"{"name":"root","password":"wrong"}"#),
        log_in(r#"{"name":"nobody","password":"wrong"}"#),
        log_in(r#"{"name":"guest","password":"guest"}"#),
        Step::Sign(Token::Given),
    ]);
    // Somebody who may not do much.
    steps.extend([
        status(Who::One),
        list(Who::One, LOCAL),
        transfer(Who::Leader, Who::One),
        auth("/v3/auth/user/add", r#"{"name":"x","password":"x"}"#),
    ]);
    // Somebody who may do everything, at every member.
    steps.extend([Step::Sign(Token::None), log_in(r#"{"name":"root","password":"right"}"#), Step::Sign(Token::Given)]);
    steps.push(Step::Wait(1));
    steps.extend(look_at_all());
    // A member that was restarted has forgotten the token, unless the login was the last thing it wrote: it would replay that.
    steps.extend([auth("/v3/auth/user/add", r#"{"name":"late","password":"late"}"#), Step::Wait(1)]);
    steps.extend([Step::Kill(Who::Other), Step::Wait(3), Step::Start(Who::Other, which), Step::Wait(8)]);
    steps.extend([status(Who::Other), status(Who::One), transfer(Who::Leader, Who::Leader)]);
    steps.extend([Step::Sign(Token::None), log_in(r#"{"name":"root","password":"right"}"#), Step::Sign(Token::Given)]);
    steps.extend([Step::Wait(1), status(Who::Other), status(Who::One)]);
    steps
}

fn one_version(which: Which) -> Vec<Step> {
    let mut steps = found(which);
    steps.extend(look_at_all());
    steps.extend([get(Who::One, "/livez"), get(Who::One, "/nowhere"), list(Who::One, LINEAR)]);
    // Handing over.
    steps.extend([
        transfer(Who::One, Who::One),
        post(Who::Leader, TRANSFER, r#"{"targetID":"12345"}"#),
        post(Who::Leader, TRANSFER, "{}"),
        transfer(Who::Leader, Who::Leader),
    ]);
    // A learner.
    steps.extend([
        add_learner(Who::Leader),
        // What a follower knows by itself may be older; after this read it has caught up.
        list(Who::One, LINEAR),
        list(Who::One, LOCAL),
        transfer(Who::Leader, Who::Later),
        Step::Start(Who::Later, which),
        Step::Wait(12),
    ]);
    steps.extend(look(Who::Later));
    steps.extend([
        transfer(Who::Later, Who::One),
        transfer(Who::Leader, Who::Later),
        list(Who::One, LOCAL),
        Step::Ask(Ask::post(Who::Leader, "/v3/cluster/member/remove", r#"{"ID":"$id"}"#).about(Who::Later)),
        Step::Wait(2),
        Step::Kill(Who::Later),
        list(Who::One, LINEAR),
        list(Who::One, LOCAL),
    ]);
    // Leadership moves, and its old holder dies.
    steps.extend([transfer(Who::Leader, Who::One), Step::Wait(2)]);
    steps.extend(ALL.map(status));
    steps.extend([transfer(Who::Leader, Who::Other), Step::Kill(Who::Leader), Step::Wait(1)]);
    steps.extend([transfer(Who::One, Who::Leader), Step::Wait(2), status(Who::One), get(Who::One, "/health")]);
    steps.push(add_learner(Who::One));
    // The quorum is lost, and comes back.
    steps.extend([Step::Kill(Who::Other), Step::Wait(5)]);
    steps.extend(look(Who::One));
    steps.extend([list(Who::One, LINEAR), transfer(Who::One, Who::Other), transfer(Who::One, Who::One)]);
    steps.extend([Step::Start(Who::Other, which), Step::Wait(8)]);
    // Who won the vote is chance, so nobody's leader is asked for.
    steps.extend([get(Who::Other, "/health"), get(Who::One, "/readyz"), list(Who::Other, LINEAR)]);
    steps.extend([Step::Start(Who::Leader, which), Step::Wait(8), Step::Cast]);
    steps.extend(look_at_all());
    steps
}

fn look_at_all() -> Vec<Step> {
    ALL.into_iter().flat_map(look).collect()
}

/// Member by member, as the operator does it, and back as far as there is a way.
fn upgrade() -> Vec<Step> {
    let mut steps = found(Which::Old);
    let replace = |who, which| vec![Step::Kill(who), Step::Wait(3), Step::Start(who, which), Step::Wait(8)];
    steps.extend(replace(Who::Other, Which::New));
    steps.extend(look_at_all());
    // While one stays, there is a way back.
    steps.extend(replace(Who::Other, Which::Old));
    steps.push(status(Who::Other));
    steps.extend(replace(Who::Other, Which::New));
    steps.extend(replace(Who::One, Which::New));
    steps.extend(look_at_all());
    steps.extend([transfer(Who::Leader, Who::Other), Step::Wait(2)]);
    steps.extend(ALL.map(status));
    steps.extend(replace(Who::Leader, Which::New));
    // The cluster's version rises within a few seconds, and the data's after it.
    steps.push(Step::Wait(10));
    steps.extend(look_at_all());
    // And then there is none.
    steps.extend([Step::Kill(Who::One), Step::Wait(3), Step::Start(Who::One, Which::Old)]);
    steps.extend([Step::Start(Who::One, Which::New), Step::Wait(8)]);
    steps.extend(look_at_all());
    steps
}
