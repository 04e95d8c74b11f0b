//! Fleets: one ServiceImage and all resources that it is about.
//!
//! ```text
//!   watch of the kind ─▶ index (one event, one resource; and that it is alive)
//!   a round: read the ServiceImage live ─▶ decide (pure) ─▶ reserve the batch (compare-and-swap) ─▶ write it ─▶ again
//! ```
//! The reservation comes after everything that was read about the batch, and succeeds only on the ServiceImage that was decided on, with
//! our claim on it: it is the uncached read that the guarantee rests on (E6, ADR 0013). A successor touches what is reserved before it
//! decides anything (H1, H2).

mod contract;
mod diagnose;
mod gates;
mod labels;
mod loose;
mod namespaces;
mod pace;
mod permission;
mod rivals;
mod stamp;
mod unreadable;
mod unsettled;
mod watch;

use std::{collections::BTreeMap, time::Duration};

use futures::{
    FutureExt, StreamExt,
    channel::mpsc::{self, UnboundedReceiver},
    future::join_all,
};
use jiff::Timestamp;
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, GroupVersionKind},
    discovery::{ApiResource, pinned_kind, verbs},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};
use windlass_api::{
    ServiceImage, ServiceImageStatus, fleet, reading,
    service_image::{Reserved, TargetKind},
    status::OperatorClaim,
    translate,
};
use windlass_plan::{
    Hold, Reason,
    bug::{self, Bug},
    fleet::{Index, Item, ItemId, NAMED, Plan, Terms, TierName, Verdict, View, decide},
};

pub use self::diagnose::Diagnoses;

use self::{
    contract::{Contract, Pen},
    gates::{Asking, Asks},
    loose::Loose,
    namespaces::Namespaces,
    pace::Pace,
    rivals::Rivals,
    stamp::{Sent, Touched},
    unsettled::Unsettled,
    watch::{Told, Watch, believed_until},
};
use crate::{
    actor::Actor,
    error::{Class, Error},
    lenient::Whole,
    live::{Read, get},
    owner::{
        self,
        claim::{Stand, stand},
        events::{Telling, tell},
        failed,
        finalizer::{Located, is_guarded},
        is_ours, tell_if_new,
    },
};

/// After something was seen, how long it is waited for more before the next round.
const GATHER: Duration = Duration::from_millis(100);
/// How long the API server is left alone that has too much to do, or says that something is not there.
const THROTTLED: Duration = Duration::from_secs(1);
/// How often a kind that does not exist is looked for.
const RETRY_KIND: Duration = Duration::from_secs(10);

/// What becomes of looking after a ServiceImage.
enum Tended {
    /// It is gone.
    Gone,
    /// Begin again after this long, or when it changes.
    Again(Duration),
}

/// Looks after one ServiceImage until it is gone. `poke` says that it changed.
pub async fn look_after(actor: Actor<'_>, name: &str, poke: &Notify) {
    loop {
        let pause = match Box::pin(tend(actor, name, poke)).await {
            Ok(Tended::Gone) => {
                actor.context.diagnoses.forget(name);
                return actor.context.metrics.forget_fleet(name);
            }
            Ok(Tended::Again(pause)) => {
                actor.context.metrics.pass(None);
                pause
            }
            Err(error) => {
                // What failed rests, whatever pokes it.
                tokio::time::sleep(failed(actor, &name, &error)).await;
                continue;
            }
        };
        let _either = tokio::time::timeout(pause, poke.notified()).await;
    }
}

/// The resources of a ServiceImage as they are seen.
struct Fleet {
    target: Target,
    namespaces: Namespaces,
    contract: Contract,
    /// Who else has resources of this kind.
    rivals: Rivals,
    /// What was refused was refused of this generation of the ServiceImage.
    generation: Option<i64>,
    index: Index,
    /// What a new list has brought so far.
    arriving: Option<BTreeMap<ItemId, Item>>,
    /// A whole list was seen.
    primed: bool,
    /// When the watch was last heard of.
    heard: Instant,
    /// What keeps it from being heard of.
    broken: Option<String>,
    /// Why all that was seen counts no more, where that is so.
    over: Option<Over>,
    /// When the status was written last.
    wrote: Option<Instant>,
    /// How many are written at once.
    pace: Pace,
    /// Those whose last write was not answered.
    unsettled: Unsettled,
}

/// Why everything has to be seen anew.
enum Over {
    /// We have no right to watch them, in the API server's words.
    Refused(String),
    /// There is no such kind any more.
    Missing,
    /// Revisions went back: etcd was restored (H4).
    WentBack,
}

/// How a resource was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// In the watch, which may be behind the answers to what we write and read.
    Watched,
    /// In the answer to a request that was made after all that is known.
    Live,
}

/// What a watch told, and when.
type Heard = (Instant, Told<Loose>);

/// A kind that exists.
#[derive(Clone)]
pub struct Target {
    resource: ApiResource,
    namespaced: bool,
}

impl Target {
    fn api(&self, actor: Actor<'_>, namespace: &str) -> Api<Loose> {
        let client = actor.context.client.clone();
        if self.namespaced {
            Api::namespaced_with(client, namespace, &self.resource)
        } else {
            Api::all_with(client, &self.resource)
        }
    }
}

impl Fleet {
    /// Takes in what the watch told.
    fn take(&mut self, (when, told): Heard) {
        // That it broke off, or begins again, is no sign of life, and neither is a list that may break off at its next page.
        if !matches!(told, Told::Begun | Told::Listed(_) | Told::Broke(_)) {
            self.heard = when;
            self.broken = None;
        }
        match told {
            Told::Begun => self.arriving = Some(BTreeMap::new()),
            Told::Listed(Loose(object)) => {
                let ours = !is_deleted(&object) && self.is_about(&object);
                let item = self.item(&object);
                if let Some(arriving) = self.arriving.as_mut().filter(|_| ours) {
                    arriving.insert(id(&object), item);
                }
            }
            Told::Whole(revision) => self.replace(revision.parse().ok()),
            Told::Changed(Loose(object)) => self.see(&object, Sight::Watched),
            Told::Gone(Loose(object)) => {
                let id = id(&object);
                if self.index.item(&id).is_some_and(|known| Some(&known.fence.uid) == object.metadata.uid.as_ref()) {
                    self.index.forget(&id);
                }
            }
            Told::Alive => {}
            Told::WentBack => self.over = Some(Over::WentBack),
            Told::Broke(error) => {
                tracing::debug!(error = error.story(), "a watch broke off");
                if let Some(why) = error.refusal() {
                    self.over = Some(Over::Refused(why.to_owned()));
                } else if error.is_not_found() {
                    self.over = Some(Over::Missing);
                }
                self.broken = Some(error.story());
            }
        }
    }

    /// A list is whole: it is what there is. What was written while it was made is newer in the answers to those writes.
    fn replace(&mut self, listed: Option<u64>) {
        let newer = |item: &Item| listed.is_some_and(|listed| number(item).is_some_and(|number| number > listed));
        let arrived = self.arriving.take().unwrap_or_default();
        let known = self.index.items().filter(|(_, item)| !newer(item));
        let gone: Vec<ItemId> = known.map(|(id, _)| id).filter(|id| !arrived.contains_key(*id)).cloned().collect();
        for id in gone {
            self.index.forget(&id);
        }
        for (id, item) in arrived {
            if !self.index.item(&id).is_some_and(newer) {
                self.index.observe(&id, item);
            }
        }
        self.primed = true;
    }

    fn is_about(&self, object: &DynamicObject) -> bool {
        self.namespaces.contains(object.metadata.namespace.as_deref().unwrap_or_default())
    }

    /// A resource as it is believed after what was known of it.
    fn item(&self, object: &DynamicObject) -> Item {
        let id = id(object);
        let before = self.index.item(&id).filter(|before| Some(&before.fence.uid) == object.metadata.uid.as_ref());
        // One that is never answered is not believed for as long as that lasts.
        let given_up = self.index.refusal(&id).is_some_and(|refusal| refusal.unsettled);
        let writing = self.index.reserved().contains(&id) && !given_up;
        let seen = Item { taken_by: self.rivals.owner_of(object), ..self.contract.item(object, before) };
        seen.believed(before, writing, self.index.now())
    }

    /// A resource was seen. What a watch shows that is older than what is known says nothing; what is older in the answer to a request says
    /// that revisions went back (H4).
    fn see(&mut self, object: &DynamicObject, sight: Sight) {
        if !self.is_about(object) {
            return;
        }
        let (id, item) = (id(object), self.item(object));
        let known = self.index.item(&id);
        if known.is_some_and(|known| known.fence.uid == item.fence.uid && number(known) > number(&item)) {
            match sight {
                Sight::Watched => {}
                Sight::Live => self.over = Some(Over::WentBack),
            }
            return;
        }
        if is_deleted(object) {
            self.index.forget(&id);
        } else {
            self.index.observe(&id, item);
        }
    }

    /// An image may not be written to it, or writes to it are never answered. Where nobody knows which, it is the one that it shall have.
    fn refuse(&mut self, id: &ItemId, image: Option<&str>, why: String, now: Timestamp) {
        let image = image.or_else(|| self.index.wanted(id)).unwrap_or_default().to_owned();
        self.index.refuse(id, &image, why, now);
    }

    /// All of it was seen, and the watch was heard of lately enough to say that this is still so.
    fn is_seen(&self, actor: Actor<'_>) -> bool {
        self.primed && self.arriving.is_none() && !self.is_silent(actor)
    }

    /// Nothing was heard of it for too long.
    fn is_silent(&self, actor: Actor<'_>) -> bool {
        believed_until(actor.context, self.heard) <= Instant::now()
    }
}

/// The revision of a resource: those of one kind can be compared.
fn number(item: &Item) -> Option<u64> {
    item.fence.resource_version.parse().ok()
}

fn is_deleted(object: &impl Resource) -> bool {
    object.meta().deletion_timestamp.is_some()
}

fn id(object: &DynamicObject) -> ItemId {
    ItemId::new(object.namespace().unwrap_or_default(), object.name_any())
}

async fn read(actor: Actor<'_>, name: &str) -> Result<Option<Read<ServiceImage>>, Error> {
    let api: Api<Whole<ServiceImage>> = Api::all(actor.context.client.clone());
    let whole = get(actor.context, &format!("serviceimages/{name}"), &api, name).await?;
    // One that is being deleted and does not wait for us is none of ours any more.
    let whole = whole.filter(|whole| !is_deleted(whole) || is_guarded(whole));
    Ok(whole.map(|whole| Read::of(whole, reading::service_image)))
}

async fn tend(actor: Actor<'_>, name: &str, poke: &Notify) -> Result<Tended, Error> {
    let context = actor.context;
    let resource = match read(actor, name).await? {
        Some(Read::Clear(resource)) => *resource,
        Some(Read::Odd(hold, resource)) => {
            let again = unreadable::look(actor, &hold, &resource).await?;
            return Ok(again.map_or(Tended::Gone, Tended::Again));
        }
        None => return Ok(Tended::Gone),
    };
    let status = resource.status.clone().unwrap_or_default();
    let recorded = translate::recorded(status.operator.as_ref(), !status.batch.is_empty());
    let operator = match stand(actor, &recorded) {
        Stand::Held => None,
        Stand::Wait(pause) => return Ok(Tended::Again(pause)),
        Stand::Claim(operator) => {
            let operator = Some(unsettled(operator));
            let written = owner::record(actor, &resource, ServiceImageStatus { operator, ..status }).await?;
            owner::is_kept(&written)?;
            return Ok(Tended::Again(Duration::ZERO));
        }
        Stand::Touch(operator) => Some(operator),
    };
    let target = match find(actor, &resource.spec.target).await? {
        Ok(target) => target,
        // Nothing can be on its way to what does not exist, and nobody may be touched who may not be changed.
        Err(_) if is_deleted(&resource) => return let_go(actor, &resource).await,
        Err(hold) => return hold_back(actor, &resource, &hold, RETRY_KIND).await,
    };
    let begun = operator.is_some() || !status.batch.is_empty() || !status.intents.is_empty();
    let (resource, left) = if begun {
        match finish(actor, resource, &target, operator).await? {
            Finished::Left(resource, left) => (*resource, left),
            Finished::Tended(tended) => return Ok(tended),
        }
    } else {
        (resource, Unsettled::default())
    };
    if is_deleted(&resource) {
        return let_go(actor, &resource).await;
    }
    if !is_guarded(&resource) && !bug::active(Bug::DeletedInFlight) {
        let guarded = located(actor, &resource).guard(actor).await;
        told_if_refused(actor, name, Reason::TargetNotAllowed, guarded).await?;
        return Ok(Tended::Again(Duration::ZERO));
    }
    let contract = match Contract::read(&resource) {
        Ok(contract) => contract,
        Err(hold) => return hold_back(actor, &resource, &hold, context.settings.idle_recheck).await,
    };
    let mut index = Index::new(Terms::default(), context.clock.now());
    left.ids().for_each(|id| index.reserve(id));
    let everywhere: Api<Loose> = match &context.settings.namespace {
        Some(namespace) => target.api(actor, namespace),
        None => Api::all_with(context.client.clone(), &target.resource),
    };
    if !target.namespaced && resource.spec.target.namespace_selector.is_some() {
        let message = format!("spec.target.namespaceSelector: {} belong to no namespace", target.resource.plural);
        return hold_back(actor, &resource, &Hold::new(Reason::InvalidSpec, message), context.settings.idle_recheck)
            .await;
    }
    let namespaces = Namespaces::read(actor, resource.spec.target.namespace_selector.as_ref()).await;
    let namespaces = told_if_refused(actor, name, Reason::ApiServerRefused, namespaces).await?;
    let rivals = Rivals::read(actor, &resource).await;
    let rivals = told_if_refused(actor, name, Reason::ApiServerRefused, rivals).await?;
    let others = namespaces.clone();
    let pace = Pace::new(context.settings.stamp_concurrency);
    let fleet = Fleet {
        target,
        namespaces,
        contract,
        rivals,
        generation: resource.metadata.generation,
        index,
        arriving: None,
        primed: false,
        heard: Instant::now(),
        broken: None,
        over: None,
        wrote: None,
        pace,
        unsettled: left,
    };
    // What is seen is taken off the wire also while others are written to: a watch that nobody reads is ended by the API server.
    let (seen, events) = mpsc::unbounded();
    let (plural, selector) = (fleet.target.resource.plural.clone(), resource.spec.target.label_selector.clone());
    let watch = Watch::new(context, &plural, everywhere, selector.as_deref(), |told| {
        // Nobody listens any more only when nobody reads this, either.
        let _unheard = seen.unbounded_send((Instant::now(), told));
    });
    tokio::select! {
        biased;
        tended = Box::pin(rounds(actor, &resource, fleet, events, poke)) => tended,
        () = others.changed(actor) => Ok(Tended::Again(Duration::ZERO)),
        () = watch.run() => Ok(Tended::Again(RETRY_KIND)),
    }
}

/// A claim as it is written first. Another of its name may have been deleted a moment ago, and with it what says what is on its way: nothing is
/// settled before that has landed (H1).
fn unsettled(claim: OperatorClaim) -> OperatorClaim {
    OperatorClaim { predecessor_done: claim.predecessor_done && bug::active(Bug::RecreatedIsSettled), ..claim }
}

/// What becomes of what was begun before.
enum Finished {
    /// All of it, and then look again.
    Tended(Tended),
    /// All but these: it goes on beside them.
    Left(Box<ServiceImage>, Unsettled),
}

/// Finishes what the predecessor began, or we ourselves before something went wrong: late writes must miss (H1). `operator` is who acts from
/// now on.
async fn finish(
    actor: Actor<'_>,
    resource: ServiceImage,
    target: &Target,
    operator: Option<OperatorClaim>,
) -> Result<Finished, Error> {
    let (name, status) = (resource.name_any(), resource.status.clone().unwrap_or_default());
    // A Job that is made for one that is deleted goes with it.
    if !is_deleted(&resource) {
        Asks::of(&resource, &actor.context.settings, &BTreeMap::new()).settle(actor, &status.intents).await?;
    }
    let mut left = Unsettled::default();
    if !bug::active(Bug::ReservedNotTouched) {
        let touch = async |batch: &[Reserved]| {
            let settled = settle(actor, target, &Pen::of(&resource), batch).await;
            told_if_refused(actor, &name, Reason::TargetNotAllowed, settled).await
        };
        left = touch(&status.batch).await?;
        if is_deleted(&resource) && left.any_refused() {
            // What is refused now may have been let through a moment ago, and land.
            tokio::time::sleep(actor.context.settings.longest_write).await;
            left = touch(&left.reserved()).await?;
        }
    }
    if is_deleted(&resource) {
        // Nobody reads its status after this: that it may not be written any more must not keep it for ever.
        return Ok(Finished::Tended(match left.keeps() {
            Some(hold) => hold_back(actor, &resource, &hold, RETRY_KIND).await?,
            None => let_go(actor, &resource).await?,
        }));
    }
    let operator = operator.or(status.operator.clone());
    let settled = ServiceImageStatus { operator, batch: left.reserved(), intents: Vec::new(), ..status };
    let recorded = owner::record(actor, &resource, settled).await;
    let resource = told_if_refused(actor, &name, Reason::TargetNotAllowed, recorded).await?;
    if left.is_empty() {
        return Ok(Finished::Tended(Tended::Again(Duration::ZERO)));
    }
    Ok(Finished::Left(Box::new(resource), left))
}

/// Touches what is reserved, so that whatever is still on its way there misses (H1). What can't be touched for want of an answer is left
/// reserved.
async fn settle(actor: Actor<'_>, target: &Target, pen: &Pen, batch: &[Reserved]) -> Result<Unsettled, Error> {
    let mut left = Unsettled::default();
    for some in batch.chunks(unsettled::AT_ONCE) {
        // Where so many are not answered the others wait for their time: nothing else is done meanwhile.
        if left.unanswered() >= unsettled::AT_ONCE {
            for one in some {
                left.leave(one, "Windlass has not tried yet".to_owned(), false, actor.context.clock.now());
            }
            continue;
        }
        let touch = async |one: &Reserved| {
            stamp::touch(actor, target, pen, &ItemId::new(&one.namespace, &one.name), &one.uid).await
        };
        for (one, touched) in some.iter().zip(join_all(some.iter().map(touch)).await) {
            match touched {
                Ok(Touched::Moved | Touched::Gone) => {}
                Ok(Touched::Refused(why)) => {
                    tracing::warn!(namespace = one.namespace, name = one.name, %why, "a touch was refused");
                    left.leave(one, why, true, actor.context.clock.now());
                }
                Err(error) if error.class() == Class::Transient && !bug::active(Bug::UnansweredStopsAll) => {
                    tracing::warn!(namespace = one.namespace, name = one.name, error = error.story(), "no answer");
                    left.leave(one, error.story(), false, actor.context.clock.now());
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(left)
}

/// The same for one that can't be read, as far as what it has reserved can be.
pub async fn settle_odd(actor: Actor<'_>, resource: &Whole<ServiceImage>) -> Result<(), Error> {
    let target = resource.raw.pointer("/spec/target").and_then(|target| TargetKind::deserialize(target).ok());
    let Some(kind) = target else { return Ok(()) };
    let batch = resource.raw.pointer("/status/batch").and_then(Value::as_array).into_iter().flatten();
    let batch: Vec<Reserved> = batch.filter_map(|one| Reserved::deserialize(one).ok()).collect();
    match find(actor, &kind).await? {
        Ok(target) => {
            let left = settle(actor, &target, &Pen::new(resource.uid().unwrap_or_default(), &kind), &batch).await?;
            left.keeps().map_or(Ok(()), |hold| Err(Error::Held(hold)))
        }
        Err(_) => Ok(()),
    }
}

fn located<'a>(actor: Actor<'_>, resource: &'a ServiceImage) -> Located<'a, ServiceImage> {
    let what = format!("serviceimages/{}", resource.name_any());
    Located { api: Api::all(actor.context.client.clone()), what, resource }
}

/// Nothing of it is on its way any more.
async fn let_go(actor: Actor<'_>, resource: &ServiceImage) -> Result<Tended, Error> {
    located(actor, resource).release(actor).await?;
    Ok(Tended::Gone)
}

/// Looks at what was seen and acts, again and again.
async fn rounds(
    actor: Actor<'_>,
    resource: &ServiceImage,
    mut fleet: Fleet,
    mut events: UnboundedReceiver<Heard>,
    poke: &Notify,
) -> Result<Tended, Error> {
    let (name, target) = (resource.name_any(), &resource.spec.target);
    let mut asking = Asking::default();
    loop {
        asking.listen();
        // It takes its time, and what is seen meanwhile is taken in before anything is decided.
        unsettled::settle(actor, &mut fleet).await?;
        while let Some(Some(told)) = events.next().now_or_never() {
            fleet.take(told);
        }
        match fleet.over.take() {
            Some(Over::Refused(why)) => {
                return hold_back(actor, resource, &Hold::new(Reason::TargetNotAllowed, why), RETRY_KIND).await;
            }
            Some(Over::WentBack) => {
                tracing::warn!(%name, "resource versions went back (was etcd restored?); everything is read again");
                return Ok(Tended::Again(Duration::ZERO));
            }
            Some(Over::Missing) => return Ok(Tended::Again(THROTTLED)),
            None => {}
        }
        let looked = if fleet.is_seen(actor) {
            round(actor, &name, target, &mut fleet, &mut asking).await?
        } else if fleet.is_silent(actor) {
            unseen(actor, &name, target, &fleet).await?
        } else {
            Round::Wait(actor.context.settings.idle_recheck)
        };
        let pause = match looked {
            Round::Gone => return Ok(Tended::Gone),
            Round::Anew(pause) => return Ok(Tended::Again(pause)),
            Round::Wait(pause) => pause,
        };
        if pause.is_zero() {
            continue;
        }
        let pause = asking.due().map_or(pause, |due| pause.min(due));
        tokio::select! {
            biased;
            Some(told) = events.next() => {
                fleet.take(told);
                // More comes with it: one look for all of it.
                tokio::time::sleep(GATHER.min(pause)).await;
            }
            () = asking.heard() => {}
            () = poke.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The kind, if it exists and may be changed (H41).
async fn find(actor: Actor<'_>, target: &TargetKind) -> Result<Result<Target, Hold>, Error> {
    let TargetKind { group, version, kind, .. } = target;
    let name = format!("{group}/{kind}");
    if let Some(hold) = permission::out_of_the_question(&actor.context.settings, target) {
        return Ok(Err(hold));
    }
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let discover = pinned_kind(&actor.context.client, &gvk);
    let found = actor.context.bounded(actor.context.settings.read_deadline, "discover", &name, discover).await;
    let missing = || Hold::new(Reason::TargetNotFound, format!("there is no kind {kind} of {group}/{version}"));
    match found {
        // The API server has taken these verbs away from a kind whose definition is being deleted, and deletes what is left of it.
        Ok((_, capabilities)) if !capabilities.supports_operation(verbs::PATCH) => Ok(Err(Hold::new(
            Reason::TargetNotFound,
            format!("the definition of {kind} of {group}/{version} is being deleted"),
        ))),
        Ok((resource, capabilities)) => {
            if let Some(hold) = permission::refusal(actor, target, &resource.plural).await? {
                return Ok(Err(hold));
            }
            Ok(Ok(Target { resource, namespaced: capabilities.scope == kube::discovery::Scope::Namespaced }))
        }
        Err(error) if error.is_not_found() || error.is_unknown_kind() => Ok(Err(missing())),
        Err(error) => Err(error),
    }
}

async fn hold_back(actor: Actor<'_>, resource: &ServiceImage, hold: &Hold, pause: Duration) -> Result<Tended, Error> {
    actor.context.metrics.hold(hold.reason);
    let before = resource.status.clone().unwrap_or_default();
    let status = fleet::held(&before, resource, hold, actor.context.clock.now());
    if status != before {
        owner::record(actor, resource, status).await?;
        tell_if_new(actor, resource, hold, hold.reason.needs_a_person()).await;
    }
    Ok(Tended::Again(pause))
}

/// What a round leads to.
enum Round {
    /// The ServiceImage is gone.
    Gone,
    /// It is another one, or another's: begin anew.
    Anew(Duration),
    /// Look again after this long, or when something is seen.
    Wait(Duration),
}

impl Round {
    /// The same, and after so long at the latest.
    fn within(self, most: Option<Duration>) -> Self {
        match (self, most) {
            (Self::Wait(pause), Some(most)) => Self::Wait(pause.min(most.max(GATHER))),
            (round @ (Self::Gone | Self::Anew(_) | Self::Wait(_)), _) => round,
        }
    }
}

/// Nothing was heard of the fleet for too long. The watch has begun again with a list by itself; where that fails, too, it is said.
async fn unseen(actor: Actor<'_>, name: &str, target: &TargetKind, fleet: &Fleet) -> Result<Round, Error> {
    let idle = Round::Wait(actor.context.settings.idle_recheck);
    let Some(broken) = &fleet.broken else { return Ok(idle) };
    let resource = match read(actor, name).await? {
        Some(Read::Clear(resource)) => *resource,
        Some(Read::Odd(..)) => return Ok(Round::Anew(Duration::ZERO)),
        None => return Ok(Round::Gone),
    };
    if !is_ours(actor, &resource) || resource.spec.target != *target {
        return Ok(Round::Anew(Duration::ZERO));
    }
    let plural = &fleet.target.resource.plural;
    let message = format!("Windlass can't list or watch {plural}, and changes none of them until it can: {broken}");
    hold_back(actor, &resource, &Hold::new(Reason::WatchSilent, message), Duration::ZERO).await?;
    Ok(idle)
}

/// One look: decide, reserve, write, report.
async fn round<'a>(
    actor: Actor<'a>,
    name: &str,
    target: &TargetKind,
    fleet: &mut Fleet,
    asking: &mut Asking<'a>,
) -> Result<Round, Error> {
    let (context, now) = (actor.context, actor.context.clock.now());
    let resource = match read(actor, name).await? {
        Some(Read::Clear(resource)) => *resource,
        Some(Read::Odd(..)) => return Ok(Round::Anew(Duration::ZERO)),
        None => return Ok(Round::Gone),
    };
    let before = resource.status.clone().unwrap_or_default();
    let ours = is_ours(actor, &resource);
    let current =
        context.own_writes.is_current(&format!("serviceimages/{name}"), resource.resource_version().as_deref());
    let other = resource.spec.target != *target || !fleet.contract.is_of(&resource);
    let unguarded = !is_guarded(&resource) && !bug::active(Bug::DeletedInFlight);
    if !ours || !current || other || unguarded || is_deleted(&resource) {
        return Ok(Round::Anew(if current { Duration::ZERO } else { GATHER }));
    }
    if let Some(hold) = permission::refusal(actor, target, &fleet.target.resource.plural).await? {
        hold_back(actor, &resource, &hold, Duration::ZERO).await?;
        return Ok(Round::Anew(RETRY_KIND));
    }
    // That nobody is there may be because the kind is going: what does not exist is not up to date.
    if fleet.index.items().next().is_none()
        && let Err(hold) = find(actor, target).await?
    {
        hold_back(actor, &resource, &hold, Duration::ZERO).await?;
        return Ok(Round::Anew(RETRY_KIND));
    }
    let mut want = match fleet::want(&resource) {
        Ok(want) => want,
        Err(hold) => {
            hold_back(actor, &resource, &hold, Duration::ZERO).await?;
            return Ok(Round::Wait(context.settings.idle_recheck));
        }
    };
    // Each of them keeps its place in the batch.
    want.batch = want.batch.saturating_sub(fleet.unsettled.len());
    let record = fleet::record(&before);
    let begun = |tier: &TierName| record.tiers.get(tier).and_then(|kept| kept.started_at);
    let terms = want.terms(begun, record.retried_at);
    if terms == *fleet.index.terms() {
        fleet.index.advance(now);
    } else {
        fleet.index.rebuild(terms, now);
    }
    // Whatever people ask for anew may be what was refused before.
    let anew = std::mem::replace(&mut fleet.generation, resource.metadata.generation) != resource.metadata.generation;
    let is_done = |tier: &TierName| record.tiers.get(tier).is_some_and(|kept| kept.complete);
    fleet.index.forgive(anew, is_done, now);
    let looked = diagnose::look(actor, fleet, &resource, &want, &record).await;
    let (asked, handled) = (&resource.spec.requests, &before.requests);
    let asks = Asks::of(&resource, &context.settings, asking.see(&fleet.index));
    let (gates, tier_gates) = asks.gates(asking);
    let view = View {
        index: &fleet.index,
        record: &record,
        gates: &gates,
        tier_gates: &tier_gates,
        diagnoses: &looked.diagnoses,
        approve: translate::is_fresh(asked.approve.as_ref(), handled.approve.as_ref()),
        retry: translate::is_fresh(asked.retry.as_ref(), handled.retry.as_ref()),
    };
    let mut plan = decide(&want, &view, now);
    let unnamed = NAMED.saturating_sub(plan.refused.len());
    plan.refused.extend(fleet.unsettled.named(&fleet.index).take(unnamed));
    if let Some(hold) = fleet.unsettled.hold().filter(|_| want.batch == 0 && plan.verdict == Verdict::Going) {
        plan.verdict = Verdict::Halt(hold);
    }
    // Before anything is written, and to say who has what is not: who else there is may have changed.
    let taken = plan.tiers.iter().any(|tier| tier.taken > 0);
    if (taken || !plan.stamps.is_empty()) && Rivals::read(actor, &resource).await? != fleet.rivals {
        return Ok(Round::Anew(Duration::ZERO));
    }
    context.metrics.fleet(name, &plan, fleet.index.untaken());
    let mut status = fleet::planned(&before, &resource, &plan, now);
    status.batch = fleet.unsettled.reserved();
    status.batch.extend(fleet::batch(&plan.stamps));
    status.intents = plan.start.as_ref().and_then(|gate| asks.intent(gate)).into_iter().collect();
    let told = asking.ask(context, &asks, &plan.gates);
    if plan.stamps.is_empty() && status.intents.is_empty() {
        // Nothing is said before those were heard who are asked: that they were not would be news to nobody.
        let heard = Ok(Round::Wait(context.settings.idle_recheck));
        let is_done = |tier: &TierName| plan.record.tiers.get(tier).is_some_and(|kept| kept.complete);
        let again = fleet.index.next_try(is_done).map(|again| until(again, now));
        let touch = fleet.unsettled.next().map(|touch| until(touch, now));
        let again = [looked.again, again, touch].into_iter().flatten().min();
        return if told { Ok(rest(actor, &resource, fleet, &plan, status).await?.within(again)) } else { heard };
    }
    let intents = status.intents.clone();
    if bug::active(Bug::BatchNotReserved) {
        status.batch = Vec::new();
    }
    // Also where it says nothing new: the API server must say that the ServiceImage is still what was decided on, and still ours.
    owner::record(actor, &resource, fleet::reserving(&before, status)).await?;
    fleet.wrote = Some(Instant::now());
    tell_plan(actor, &resource, &plan).await;
    if !intents.is_empty() {
        let started = asks.carry_out(actor, &intents).await;
        told_if_refused(actor, name, Reason::AwaitingHook, started).await?;
        asking.forget();
    }
    Ok(match stamp::all(actor, fleet, &plan.stamps).await? {
        Sent::All => Round::Wait(Duration::ZERO),
        Sent::Throttled => Round::Wait(THROTTLED),
    })
}

/// How long until then.
fn until(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

/// What was refused is tried again: a person sees why nothing moves, or why one that is deleted stays.
async fn told_if_refused<T>(actor: Actor<'_>, name: &str, reason: Reason, done: Result<T, Error>) -> Result<T, Error> {
    if let Err(error) = &done
        && let Some(hold) = refused(error, reason)
        && let Some(Read::Clear(resource)) = read(actor, name).await?
    {
        hold_back(actor, &resource, &hold, Duration::ZERO).await?;
    }
    done
}

/// What to say of a write that the API server will not make. That we may not make it is one reason of many.
fn refused(error: &Error, reason: Reason) -> Option<Hold> {
    let lacks_a_right = error.refusal().is_some();
    let reason = if reason == Reason::TargetNotAllowed && !lacks_a_right { Reason::ApiServerRefused } else { reason };
    (error.class() == Class::Refused || error.is_denied()).then(|| Hold::new(reason, error.story()))
}

/// Nothing to write to resources: say how it stands, if that is news.
async fn rest(
    actor: Actor<'_>,
    resource: &ServiceImage,
    fleet: &mut Fleet,
    plan: &Plan,
    status: ServiceImageStatus,
) -> Result<Round, Error> {
    let before = resource.status.clone().unwrap_or_default();
    let until = match &plan.verdict {
        Verdict::Wait(hold) | Verdict::Halt(hold) => {
            actor.context.metrics.hold(hold.reason);
            hold.until
        }
        Verdict::Done | Verdict::Going => None,
    };
    let due = until.map(|until| self::until(until, actor.context.clock.now()).max(GATHER));
    let idle = actor.context.settings.idle_recheck;
    if status == before {
        return Ok(Round::Wait(due.unwrap_or(idle).min(idle)));
    }
    // Numbers alone are written once in a while: a status write for every resource would double the work.
    let since = fleet.wrote.map(|wrote| wrote.elapsed());
    if fleet::says_the_same(&status, &before) && since.is_some_and(|since| since < fleet::NUMBERS) {
        let left = fleet::NUMBERS.saturating_sub(since.unwrap_or_default()).max(GATHER);
        return Ok(Round::Wait(left));
    }
    owner::record(actor, resource, status).await?;
    fleet.wrote = Some(Instant::now());
    tell_plan(actor, resource, plan).await;
    Ok(Round::Wait(GATHER))
}

async fn tell_plan(actor: Actor<'_>, resource: &ServiceImage, plan: &Plan) {
    let before = resource.status.as_ref().map(fleet::record).unwrap_or_default();
    for (name, kept) in plan.record.tiers.iter().filter(|(_, kept)| kept.complete) {
        if before.tiers.get(name).is_some_and(|was| was.complete && was.image == kept.image) {
            continue;
        }
        let note = format!("{name} is up to date with {}", kept.image);
        tell(actor, resource, Telling { warning: false, reason: "TierComplete", action: "Stamp", note }).await;
    }
    match &plan.verdict {
        Verdict::Done | Verdict::Going => {}
        Verdict::Wait(hold) => tell_if_new(actor, resource, hold, false).await,
        Verdict::Halt(hold) => tell_if_new(actor, resource, hold, true).await,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use rstest::rstest;
    use windlass_plan::Reason;

    use super::refused;
    use crate::error::Error;

    #[rstest]
    #[case::no_right(
        403,
        "serviceimages.windlass.dev is forbidden",
        Reason::TargetNotAllowed,
        Some(Reason::TargetNotAllowed)
    )]
    #[case::not_valid(422, "status.batch: Invalid value", Reason::TargetNotAllowed, Some(Reason::ApiServerRefused))]
    #[case::too_large(413, "Request entity too large", Reason::TargetNotAllowed, Some(Reason::ApiServerRefused))]
    #[case::a_hook(422, "jobs.batch is invalid", Reason::AwaitingHook, Some(Reason::AwaitingHook))]
    #[case::too_much_to_do(429, "too many requests", Reason::TargetNotAllowed, None)]
    #[case::broken(500, "etcd is gone", Reason::TargetNotAllowed, None)]
    fn what_is_said_of_a_refused_write_is_what_it_was_refused_for(
        #[case] code: u16,
        #[case] message: &str,
        #[case] meant: Reason,
        #[case] expected: Option<Reason>,
    ) {
        let answer = serde_json::json!({"code": code, "message": message});
        let status: Status = serde_json::from_value(answer).unwrap();
        let error = Error::kubernetes("status", "serviceimages/dicom", kube::Error::Api(Box::new(status)));
        let said = refused(&error, meant);
        assert_eq!(said.as_ref().map(|hold| hold.reason), expected);
        assert!(said.is_none_or(|hold| hold.message.contains(message)));
    }
}
