//! From a system as the resource describes it to one that can be asked. Pure.

use http::Method;
use windlass_api::quorum_cluster::{HandOverMethod, Http, HttpHandOver, Question, QuestionMethod, System, SystemType};
use windlass_systems::http::{self as described, Description, HandOver, Invalid, Part};

/// The system that is described; none where the type says all.
pub fn system(system: &System) -> Result<Option<described::System>, Invalid> {
    match (system.type_, &system.http) {
        (SystemType::Http, Some(http)) => described::System::new(&description(http)).map(Some),
        (SystemType::Http, None) | (SystemType::Pd | SystemType::Etcd | SystemType::OpenBao | SystemType::Vault, _) => {
            Ok(None)
        }
    }
}

fn description(http: &Http) -> Description {
    // Destructured whole: a field that is forgotten here would never be asked.
    let Http { health, leader, version, position, id, members, hand_over, token_header } = http;
    Description {
        health: question(health),
        leader: question(leader),
        version: question(version),
        position: position.as_ref().map(question),
        id: id.as_ref().map(question),
        members: members.as_ref().map(question),
        hand_over: told(hand_over),
        token_header: token_header.clone(),
    }
}

fn question(written: &Question) -> described::Question {
    let Question { method, path, headers, body, cel } = written.clone();
    let method = match method {
        QuestionMethod::Get => Method::GET,
        QuestionMethod::Post => Method::POST,
    };
    described::Question { method, path, headers, body, cel }
}

fn told(written: &HttpHandOver) -> HandOver {
    let HttpHandOver { method, path, path_cel, headers, body, body_cel } = written.clone();
    let method = match method {
        HandOverMethod::Post => Method::POST,
        HandOverMethod::Put => Method::PUT,
        HandOverMethod::Get => Method::GET,
    };
    // The schema takes one of each pair.
    let path = path_cel.map_or_else(|| Part::Plain(path.unwrap_or_default()), Part::Cel);
    HandOver { method, path, headers, body: body_cel.map(Part::Cel).or(body.map(Part::Plain)) }
}
