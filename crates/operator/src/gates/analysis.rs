//! A query to Prometheus, and a condition on what it yields.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_api::{gates::Analysis, translate};
use windlass_plan::{Hold, Reason, gate::Outcome};
use windlass_systems::prometheus::{self, Sample};

use super::{
    Answer, Asker,
    service::{self, Purpose},
};
use crate::Context;

/// Prometheus gives up by itself after two minutes; no pass waits that long.
const LIMIT: Duration = Duration::from_secs(5);

/// What a measurement says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Measured {
    Good,
    /// In words: which value is bad.
    Bad(String),
    /// Why there is none.
    Nothing(String),
}

/// Measures, if the last measurement is old enough.
pub async fn ask(
    context: &Context,
    asker: &Asker,
    name: &str,
    analysis: &Analysis,
    not_before: Option<Instant>,
) -> Answer {
    let interval = match translate::duration("interval", &analysis.interval) {
        Ok(interval) => interval,
        Err(hold) => return Outcome::Unknown(Hold::new(hold.reason, format!("{name}: {}", hold.message))).into(),
    };
    if let Some(said) = context.asked.recent(asker, name, interval, not_before) {
        return said;
    }
    // What comes of it is no younger than the question.
    let began = context.clock.now();
    let measured = measure(context, asker, analysis).await;
    let before = context.asked.last(asker, name).map(|said| said.failures);
    let (outcome, failures) = judge(name, measured, before, analysis.consecutive_failures);
    context.asked.keep(asker, name, began, outcome, failures)
}

/// What follows from a measurement and from how many before it were bad; none where that is not known. Pure.
fn judge(name: &str, measured: Measured, before: Option<u32>, limit: u32) -> (Outcome, u32) {
    let hold = |message: String| Hold::new(Reason::AnalysisFailed, format!("{name}: {message}"));
    match measured {
        Measured::Good => (Outcome::Pass, 0),
        // It counts as bad: a good one must come before it passes again.
        Measured::Nothing(why) => (Outcome::Unknown(hold(why)), before.unwrap_or(limit).saturating_add(1)),
        Measured::Bad(what) => {
            let failures = before.map_or(limit, |before| before.saturating_add(1));
            let outcome = if failures >= limit { Outcome::Hold(hold(what)) } else { Outcome::Pass };
            (outcome, failures)
        }
    }
}

async fn measure(context: &Context, asker: &Asker, analysis: &Analysis) -> Measured {
    let Analysis { prometheus, query, cel, .. } = analysis;
    let condition = match context.asked.condition(cel, &["labels", "value"]) {
        Ok(condition) => condition,
        Err(why) => return Measured::Nothing(format!("cel: {why}")),
    };
    let (peer, transport) = match service::reach(context, asker, prometheus, Purpose::Query).await {
        Ok(reached) => reached,
        Err(why) => return Measured::Nothing(why),
    };
    let samples = match prometheus::query(transport.as_ref(), &peer, &prometheus.path, query, LIMIT).await {
        Ok(samples) => samples,
        Err(error) => return Measured::Nothing(error.to_string()),
    };
    for Sample { labels, value } in samples {
        // JSON has no word for what is no finite number, and neither is that a measurement.
        let Some(number) = serde_json::Number::from_f64(value) else {
            return Measured::Nothing(format!("the value is {value}{}", of(&labels)));
        };
        match condition.holds([("value", Value::Number(number)), ("labels", json!(labels))]) {
            Ok(true) => {}
            Ok(false) => return Measured::Bad(format!("the value is {value}{}, and {cel} is wanted", of(&labels))),
            Err(why) => return Measured::Nothing(format!("cel: {why}")),
        }
    }
    Measured::Good
}

fn of(labels: &serde_json::Map<String, Value>) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!(" of {{{}}}", labels.join(", "))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use windlass_plan::gate::Outcome;

    use super::{Measured, judge};

    fn bad() -> Measured {
        Measured::Bad("the value is 2".into())
    }

    #[rstest]
    #[case::good(Measured::Good, Some(7), 'p', 0)]
    #[case::the_first_of_three(bad(), Some(0), 'p', 1)]
    #[case::the_second_of_three(bad(), Some(1), 'p', 2)]
    #[case::the_third_of_three(bad(), Some(2), 'h', 3)]
    #[case::and_another(bad(), Some(3), 'h', 4)]
    #[case::nobody_knows_what_was_before(bad(), None, 'h', 3)]
    #[case::no_answer(Measured::Nothing("silence".into()), Some(0), 'u', 1)]
    #[case::no_answer_at_first(Measured::Nothing("silence".into()), None, 'u', 4)]
    fn so_many_in_a_row_hold(
        #[case] measured: Measured,
        #[case] before: Option<u32>,
        #[case] expected: char,
        #[case] failures: u32,
    ) {
        let (outcome, counted) = judge("Analysis/errors", measured, before, 3);
        let said = match outcome {
            Outcome::Pass | Outcome::NotAsked(_) => 'p',
            Outcome::Hold(_) => 'h',
            Outcome::Unknown(_) => 'u',
        };
        assert_eq!((said, counted), (expected, failures));
    }
}
