//! A Service that says whether to go on.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_api::gates::ServiceRef;
use windlass_plan::{
    Hold, MemberName, Reason,
    gate::{About, Outcome},
};
use windlass_systems::webhook::{self, Said};

use super::{
    Answer, Asker, Question,
    service::{self, Purpose},
};
use crate::Context;

const LIMIT: Duration = Duration::from_secs(5);
/// What it said counts for so long.
const FRESH: Duration = Duration::from_secs(10);

/// Asks it, if what it said last is old enough, or was about another member.
pub async fn ask(
    context: &Context,
    asker: &Asker,
    question: &Question,
    hook: &str,
    time: &str,
    service: &ServiceRef,
) -> Answer {
    let (name, member) = (&question.gate, member(&question.about));
    let kept = member.map_or_else(|| name.clone(), |member| format!("{name} about {member}"));
    if let Some(said) = context.asked.recent(asker, &kept, FRESH, question.not_before) {
        return said;
    }
    // What it says is no younger than the question.
    let began = context.clock.now();
    let hold = |message: String| Hold::new(Reason::AwaitingHook, format!("{name}: {message}"));
    let outcome = match service::reach(context, asker, service, Purpose::Post).await {
        Err(why) => Outcome::Unknown(hold(why)),
        Ok((peer, transport)) => {
            let path = if service.path.is_empty() { "/" } else { &service.path };
            match webhook::ask(transport.as_ref(), &peer, path, &about(asker, hook, time, member), LIMIT).await {
                Ok(Said::Yes) => Outcome::Pass,
                Ok(Said::No(words)) => Outcome::Hold(hold(format!("{} says no: {words}", peer.pod))),
                Err(error) => Outcome::Unknown(hold(error.to_string())),
            }
        }
    };
    context.asked.keep(asker, &kept, began, outcome, 0)
}

/// Whose turn it is, where that is known.
fn member(about: &About) -> Option<&MemberName> {
    match about {
        About::Next(member) => member.as_ref(),
        About::All => None,
    }
}

/// What it is told.
fn about(asker: &Asker, hook: &str, time: &str, member: Option<&MemberName>) -> Value {
    let mut about = asker.about.clone();
    if let Some(member) = member {
        about.insert("member".to_owned(), json!(member.as_str()));
    }
    about.insert("hook".to_owned(), json!(hook));
    about.insert("when".to_owned(), json!(time));
    Value::Object(about)
}
