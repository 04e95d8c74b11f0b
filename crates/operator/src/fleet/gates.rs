//! What a ServiceImage asks elsewhere (E12): who asks, what is asked, and how long an answer counts.
//!
//! Rounds may be many in a second and the asked may be slow, so neither waits for the other: the gates whose word counts now are asked in
//! the background, and a round takes what they said within the last seconds. What they did not say blocks, apart from new resources (E5).

use std::{collections::BTreeMap, time::Duration};

use futures::{FutureExt, StreamExt, future::LocalBoxFuture, stream};
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use windlass_api::{
    ServiceImage,
    service_image::{FleetHook, TierSpec},
    status::jobs::Intent,
};
use windlass_plan::{
    Hold, Reason,
    fleet::{Index, TierName, of_tier},
    gate::{About, ExternalGate, GateState, Outcome, When},
};

use crate::{
    Context, Settings,
    actor::Actor,
    error::Error,
    gates::{self, Answer, Answers, Asker, Of, Question, hook_name, job},
    jobs::{Draft, Maker, intents},
};

/// How often the gates whose word counts are asked.
const AGAIN: Duration = Duration::from_secs(5);
/// How long what they said counts, should they be slow to say it again.
const BELIEVED: Duration = Duration::from_secs(15);
/// How many are asked at once.
const AT_ONCE: usize = 8;

/// Since when all resources of a tier have been up to date, as far as this process has seen.
pub type Arrivals = BTreeMap<TierName, Instant>;

/// What a ServiceImage asks.
pub struct Asks {
    asker: Asker,
    /// For every tier.
    fleet: Vec<Question>,
    /// And for one.
    tiers: BTreeMap<TierName, Vec<Question>>,
    /// Nobody may be asked.
    refused: Option<Hold>,
}

impl Asks {
    /// What this one describes. A tier whose resources have all arrived is measured once more before it is done: what was measured before
    /// says nothing of them.
    pub fn of(resource: &ServiceImage, settings: &Settings, arrived: &Arrivals) -> Self {
        let gates = &resource.spec.gates;
        let asker = asker(resource);
        let hooks = gates.hooks.iter().filter_map(|hook| self::hook(&asker, hook));
        let fleet = gates.checks.iter().map(gates::check).chain(gates.analysis.iter().map(gates::analysis));
        let tier = |tier: &TierSpec| {
            let name = TierName(tier.upgrade_tier.clone());
            let analysis = tier.analysis.iter().map(gates::analysis);
            let not_before = arrived.get(&name).copied();
            let named = |one: Question| Question { gate: of_tier(&one.gate, &name), not_before, ..one };
            let named = analysis.map(named).collect();
            (name, named)
        };
        Self {
            fleet: fleet.chain(hooks).collect(),
            tiers: resource.spec.tiers.iter().map(tier).collect(),
            refused: refusal(&asker.maker.namespace, settings),
            asker,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Question> {
        self.fleet.iter().chain(self.tiers.values().flatten())
    }

    /// Those among them that a plan lists: their word counts now.
    fn counting(&self, listed: &[GateState]) -> Vec<Question> {
        let counts = |question: &&Question| listed.iter().any(|gate| gate.name == question.gate);
        self.all().filter(counts).cloned().collect()
    }

    /// The gates, for all tiers and for one, with what they said.
    pub fn gates(&self, asking: &Asking<'_>) -> (Vec<ExternalGate>, BTreeMap<TierName, Vec<ExternalGate>>) {
        let refused = self.refused.clone().map(|hold| Answer::from(Outcome::Hold(hold)));
        let said = |question: &Question| {
            let answer = refused.clone().or_else(|| asking.said_of(question, &self.asker).cloned())?;
            Some((question.gate.clone(), answer))
        };
        let answers: Answers = self.all().filter_map(said).collect();
        let of = |(name, questions): (&TierName, &Vec<Question>)| (name.clone(), gates::outcomes(questions, &answers));
        (gates::outcomes(&self.fleet, &answers), self.tiers.iter().map(of).collect())
    }

    /// The Job that this gate lacks.
    pub fn intent(&self, gate: &str) -> Option<Intent> {
        job::intent(&self.fleet, gate)
    }

    /// Makes the Jobs that were written down.
    pub async fn carry_out(&self, actor: Actor<'_>, intents: &[Intent]) -> Result<(), Error> {
        let draft = async |intent: &Intent| self.draft(actor.context, intent).await;
        intents::carry_out(actor, &self.asker.maker, intents, draft).await
    }

    /// The same for what a predecessor may still be about to make: its request must miss.
    pub async fn settle(&self, actor: Actor<'_>, intents: &[Intent]) -> Result<(), Error> {
        let draft = async |intent: &Intent| self.draft(actor.context, intent).await;
        intents::settle(actor, &self.asker.maker, intents, draft).await
    }

    async fn draft(&self, context: &Context, intent: &Intent) -> Result<Draft, Error> {
        match intent {
            Intent::Hook { gate, job } if self.refused.is_none() => {
                job::draft(context, &self.asker, &self.fleet, gate, job).await
            }
            Intent::Hook { gate, job: _ } => Err(Error::Gone(format!("the right to ask {gate}"))),
            Intent::Snapshot { .. } | Intent::Pull { .. } => Err(Error::Gone("the quorum of a ServiceImage".into())),
        }
    }
}

/// A ServiceImage belongs to no namespace: it asks where it says, and where whoever started the operator allows it (H41).
fn refusal(namespace: &str, settings: &Settings) -> Option<Hold> {
    if settings.allowed_gates.contains(namespace) {
        return None;
    }
    let message = format!("nobody allowed that gates of ServiceImages ask in namespace {namespace}");
    Some(Hold::new(Reason::GatesNotAllowed, message))
}

fn asker(resource: &ServiceImage) -> Asker {
    let maker = Maker::within(resource, resource.spec.gates.namespace.clone().unwrap_or_default());
    let begun = resource.status.as_ref().and_then(|status| status.started_at.as_ref());
    let begun = begun.map(|begun| begun.0.to_string()).unwrap_or_default();
    Asker {
        occasion: format!("{} {} {begun}", maker.uid, resource.meta().generation.unwrap_or_default()),
        maker,
        about: about(resource),
    }
}

/// What webhooks are told.
fn about(resource: &ServiceImage) -> Map<String, Value> {
    let spec = &resource.spec;
    let image = |tier: &TierSpec| tier.image.clone().or_else(|| spec.default_image.clone());
    let tiers = spec.tiers.iter().map(|tier| json!({"upgradeTier": tier.upgrade_tier, "image": image(tier)}));
    let progress = resource.status.as_ref().and_then(|status| status.progress.clone());
    Map::from_iter([
        ("serviceImage".to_owned(), json!({"name": resource.name_any(), "uid": resource.uid()})),
        ("tiers".to_owned(), tiers.collect()),
        ("progress".to_owned(), json!(progress)),
    ])
}

fn hook(asker: &Asker, hook: &FleetHook) -> Option<Question> {
    let FleetHook { name, when, webhook, job } = hook;
    let when = When::from(*when);
    let of = match (webhook, job) {
        (Some(service), _) => Of::Webhook { hook: name.clone(), time: when.into(), service: service.clone() },
        (None, Some(from)) => Of::Job { cron_job: from.cron_job.clone(), job: job::name(asker, name, "") },
        // The schema takes one of the two.
        (None, None) => return None,
    };
    Some(Question { gate: hook_name(name), when, of, not_before: None, about: About::All })
}

/// Asking in the background.
#[derive(Default)]
pub struct Asking<'a> {
    arrived: Arrivals,
    said: Option<Said>,
    /// The occasion, and what comes of it.
    pending: Option<(String, LocalBoxFuture<'a, Said>)>,
    /// Somebody's word counts.
    wanted: bool,
}

/// What was said, on which occasion, and when.
struct Said {
    occasion: String,
    began: Instant,
    at: Instant,
    answers: Answers,
}

impl<'a> Asking<'a> {
    /// What this one said on this occasion, if that still counts.
    fn said_of(&self, question: &Question, asker: &Asker) -> Option<&Answer> {
        let said = self.said.as_ref().filter(|said| said.occasion == asker.occasion && said.at.elapsed() < BELIEVED)?;
        let answer = said.answers.get(&question.gate)?;
        question.not_before.is_none_or(|first| first <= said.began).then_some(answer)
    }

    /// Sees which tiers have all of their resources up to date.
    pub fn see(&mut self, index: &Index) -> &Arrivals {
        let now = Instant::now();
        for name in index.terms().tiers.keys() {
            if index.tier(name).is_some_and(|tier| tier.remaining() == 0) {
                self.arrived.entry(name.clone()).or_insert(now);
            } else {
                self.arrived.remove(name);
            }
        }
        &self.arrived
    }

    /// Has those asked whose word counts, if it is time. False where nothing is known yet of one of them, so that waiting for it is all
    /// that can be done.
    pub fn ask(&mut self, context: &'a Context, asks: &Asks, listed: &[GateState]) -> bool {
        let counting = asks.counting(listed);
        self.wanted = !counting.is_empty() && asks.refused.is_none();
        if !self.wanted {
            if self.said.is_some() {
                context.asked.forget(&asks.asker);
            }
            self.forget();
            return true;
        }
        let known = counting.iter().all(|one| self.said_of(one, &asks.asker).is_some());
        let fresh = known && self.said.as_ref().is_some_and(|said| said.at.elapsed() < AGAIN);
        let asking = self.pending.as_ref().is_some_and(|(occasion, _)| *occasion == asks.asker.occasion);
        if !fresh && !asking {
            let asker = asks.asker.clone();
            self.pending = Some((asker.occasion.clone(), all(context, asker, counting).boxed_local()));
        }
        known
    }

    /// Takes in what was answered meanwhile.
    pub fn listen(&mut self) {
        let _nothing_yet = self.heard().now_or_never();
    }

    /// Waits for an answer; for ever, where nobody is asked. Dropped half way, it goes on with the next call.
    pub async fn heard(&mut self) {
        match &mut self.pending {
            Some((_, pending)) => {
                self.said = Some(pending.await);
                self.pending = None;
            }
            None => std::future::pending().await,
        }
    }

    /// When the next look is due at the latest. One that is overdue was put off by something else, and is not hurried.
    pub fn due(&self) -> Option<Duration> {
        let age = self.said.as_ref().filter(|_| self.wanted && self.pending.is_none())?.at.elapsed();
        Some(AGAIN.checked_sub(age).filter(|left| !left.is_zero()).unwrap_or(AGAIN))
    }

    /// Something was done that changes what they say.
    pub fn forget(&mut self) {
        (self.said, self.pending) = (None, None);
    }
}

async fn all(context: &Context, asker: Asker, questions: Vec<Question>) -> Said {
    let (asker, began) = (&asker, Instant::now());
    let one = |question: Question| async move {
        let answer = gates::ask(context, asker, &question, false).await;
        (question.gate, answer)
    };
    let answers = stream::iter(questions).map(one).buffered(AT_ONCE).collect().await;
    Said { occasion: asker.occasion.clone(), began, at: Instant::now(), answers }
}
