//! A Service that says whether to go on.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_api::quorum_cluster::ServiceRef;
use windlass_plan::{Hold, Reason, outcome::Outcome};
use windlass_systems::webhook::{self, Said};

use super::{Asker, service};
use crate::Context;

const LIMIT: Duration = Duration::from_secs(5);
/// What it said counts for so long.
const FRESH: Duration = Duration::from_secs(10);

/// Asks it, if what it said last is old enough.
pub async fn ask(
    context: &Context,
    asker: &Asker,
    name: &str,
    hook: &str,
    time: &str,
    service: &ServiceRef,
) -> Outcome {
    if let Some(said) = context.asked.recent(asker, name, FRESH, None) {
        return said;
    }
    let hold = |message: String| Hold::new(Reason::AwaitingHook, format!("{name}: {message}"));
    let outcome = match service::reach(context, asker, service).await {
        Err(why) => Outcome::Unknown(hold(why)),
        Ok((peer, transport)) => {
            let path = if service.path.is_empty() { "/" } else { &service.path };
            match webhook::ask(transport.as_ref(), &peer, path, &about(asker, hook, time), LIMIT).await {
                Ok(Said::Yes) => Outcome::Pass,
                Ok(Said::No(words)) => Outcome::Hold(hold(format!("{} says no: {words}", peer.pod))),
                Err(error) => Outcome::Unknown(hold(error.to_string())),
            }
        }
    };
    context.asked.keep(asker, name, &outcome, 0);
    outcome
}

/// What it is told.
fn about(asker: &Asker, hook: &str, time: &str) -> Value {
    let mut about = asker.about.clone();
    about.insert("hook".to_owned(), json!(hook));
    about.insert("when".to_owned(), json!(time));
    Value::Object(about)
}
