//! Reads a journal and objects to what must not have been written to a fleet.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_sim::journal::{Change, Entry, Event, Note, Verb};

use super::{
    DICOMS, FLEETS, NAME,
    reading::{
        age, deployed, has_failed, has_served, holds, image_for, image_of, is_elsewhere, is_left_out, is_manual,
        is_ready, removed, selects, tier_of,
    },
};
use crate::trial::is_ours;

/// What was written to a fleet, and what of it must not have been.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Images written by us.
    pub stamps: usize,
    /// All writes of ours to a Dicom, by its name.
    pub writes: BTreeMap<String, usize>,
    /// Touches at a take-over.
    pub touches: usize,
    /// Stamps of a ServiceImage that was gone by force when they landed: races that nobody could have won.
    pub orphans: usize,
    /// Times that an operator took over.
    pub take_overs: usize,
    /// What must not have happened.
    pub violations: Vec<String>,
}

/// How long what was sent may take to land: what the operator tells the API server.
const LATEST: SignedDuration = SignedDuration::from_secs(10);

/// For how long an operator may believe what a watch showed it before that died: what it knows of a resource may be as old as that. What it
/// writes there on such knowledge misses.
const BELIEVED: SignedDuration = SignedDuration::from_mins(2);

/// Among whom a limit counts.
#[derive(Clone, Copy, Debug)]
enum Among<'a> {
    Tier(&'a Value),
    Zone(&'a str),
}

/// Whether a ServiceImage has reserved this one.
fn reserved(fleet: &Value, name: &str, dicom: &Value) -> bool {
    let batch = fleet.pointer("/status/batch").and_then(Value::as_array).into_iter().flatten();
    batch.into_iter().any(|one| one["name"] == name && one["uid"] == dicom["metadata"]["uid"])
}

/// When whoever acts took over.
fn claimed(fleet: &Value) -> Option<Timestamp> {
    fleet.pointer("/status/operator/since").and_then(Value::as_str)?.parse().ok()
}

/// What was written on it with its image.
fn stamp(dicom: &Value) -> Option<Value> {
    let stamped = dicom.pointer("/metadata/annotations/windlass.dev~1stamped").and_then(Value::as_str)?;
    serde_json::from_str(stamped).ok()
}

/// When the stamp that it has was decided. A process that took over from itself may have sent it before that.
fn decided(dicom: &Value) -> Option<Timestamp> {
    stamp(dicom)?["at"].as_str()?.parse().ok()
}

/// What is known of a Dicom while the journal is read.
#[derive(Clone, Debug)]
struct Known {
    object: std::sync::Arc<Value>,
    /// When somebody else changed its spec or its labels last.
    changed: Timestamp,
    /// It has served, or may have. One that began without an image has not before it was up to date once, unless it says so.
    served: bool,
    /// Images that it was up to date with.
    well: BTreeSet<String>,
    /// The image that we gave it last, whatever it says itself.
    stamped: Option<String>,
    /// When it was on its way to that last.
    moved: Option<Timestamp>,
}

impl Known {
    /// It is on its way to what we gave it.
    fn is_moving(&self) -> bool {
        let stamped = self.stamped.as_deref();
        stamped.is_some() && stamped == image_of(&self.object) && !is_ready(&self.object) && !has_failed(&self.object)
    }
}

/// Reads the journal. `patience` is how long an operator may not have seen what somebody else did.
pub fn judge(journal: &[Entry], patience: SignedDuration) -> Judgement {
    let mut court = Court { patience, ..Court::default() };
    for entry in journal {
        let change = match &entry.event {
            Event::Write(change) => change,
            Event::Note(Note::FieldsFrozen { name, .. } | Note::WebhookBroken { name, .. }) => {
                court.unwritable.insert(name.clone());
                continue;
            }
            Event::Note(_) | Event::Quorum(_) | Event::Verb { .. } => continue,
        };
        match change.resource.as_str() {
            DICOMS => court.dicom(change, entry.at),
            FLEETS if change.name != NAME => court.other(change, entry.at),
            FLEETS => court.fleet(change, entry.at),
            _ => {}
        }
    }
    court.judgement
}

#[derive(Default)]
struct Court {
    patience: SignedDuration,
    dicoms: BTreeMap<String, Known>,
    fleet: Value,
    /// The ServiceImage that was deleted last, where somebody took its finalizer away: what it had sent may land later.
    former: Option<Value>,
    /// Other ServiceImages of the kind, by name; those whose finalizer was taken away keep what they had reserved.
    others: BTreeMap<String, Value>,
    /// When who selects what changed last.
    company_changed: Timestamp,
    /// Dicoms that a policy, a webhook or their size kept from being written, at least for a while.
    unwritable: BTreeSet<String>,
    /// Since when each that is reserved is: where no touch of it was answered it stays so.
    reserved: BTreeMap<String, Timestamp>,
    /// Those of them that have got their image.
    landed: BTreeSet<String>,
    /// When the ServiceImage said first that it had seen its newest spec.
    observed: Option<Timestamp>,
    judgement: Judgement,
}

impl Court {
    fn object(&mut self, at: Timestamp, what: &str) {
        self.judgement.violations.push(format!("{at}: {what}"));
    }

    /// Whether this ServiceImage has a Dicom: it is the oldest that is about it.
    fn has(&self, fleet: &Value, dicom: &Value) -> bool {
        let all =
            self.others.values().chain([&self.fleet]).filter(|one| one["spec"].is_object() && selects(one, dicom));
        all.min_by_key(|one| age(one)).is_some_and(|owner| owner["metadata"]["uid"] == fleet["metadata"]["uid"])
    }

    /// A write to another ServiceImage of the kind: only what it stamps is judged.
    fn other(&mut self, change: &Change, at: Timestamp) {
        let Some(after) = change.after.as_deref() else { return };
        let mut other = after.clone();
        if change.verb == Verb::Delete {
            other["spec"] = Value::Null;
            if is_ours(&change.user) {
                other["status"] = Value::Null;
            }
        }
        let before = self.others.insert(change.name.clone(), other);
        if before.is_none_or(|before| before["spec"] != after["spec"]) || change.verb == Verb::Delete {
            self.company_changed = at;
        }
    }

    /// Whether another ServiceImage did this, which may: it has the Dicom, or had it a moment ago.
    fn is_anothers(&mut self, change: &Change, after: &Value, at: Timestamp) -> bool {
        let Some(other) = self.others.values().find(|other| reserved(other, &change.name, after)).cloned() else {
            return false;
        };
        let recent = at.duration_since(self.company_changed) < self.patience;
        if !self.has(&other, after) && !recent {
            let (name, by) = (&change.name, &other["metadata"]["name"]);
            self.object(at, &format!("{} stamped {name} for {by}, which does not have it", change.user));
        }
        true
    }

    fn dicom(&mut self, change: &Change, at: Timestamp) {
        let Some(after) = change.after.as_ref().filter(|_| change.verb != Verb::Delete) else {
            self.dicoms.remove(&change.name);
            return;
        };
        let ours = is_ours(&change.user);
        if ours {
            *self.judgement.writes.entry(change.name.clone()).or_default() += 1;
            self.ours(change, after, at);
        }
        if after.pointer("/metadata/annotations/filler").is_some() {
            self.unwritable.insert(change.name.clone());
        }
        let essence = |object: &Value| (object["spec"].clone(), object["metadata"]["labels"].clone());
        let known = self.dicoms.get(&change.name);
        let foreign = !ours && change.before.as_deref().is_none_or(|before| essence(before) != essence(after));
        let same = known.filter(|known| known.object["metadata"]["uid"] == after["metadata"]["uid"]);
        let mut well = same.map(|known| known.well.clone()).unwrap_or_default();
        let changed = same.filter(|_| !foreign).map_or(at, |known| known.changed);
        let began_blank = same.map_or_else(|| image_of(after).is_none(), |known| !known.served);
        let served = match deployed(after) {
            Some(says) => says,
            // Who lost its image still says that it had one.
            None if image_of(after).is_none() => same.is_some_and(|known| known.served) && stamp(after).is_some(),
            None => !began_blank || is_ready(after),
        };
        if is_ready(after) {
            well.extend(image_of(after).map(str::to_owned));
        }
        let image = |object: &Value| image_of(object).map(str::to_owned);
        let before = change.before.as_deref().and_then(image);
        let stamped =
            if ours && before != image(after) { image(after) } else { same.and_then(|known| known.stamped.clone()) };
        let moved = same.and_then(|known| if known.is_moving() { Some(at) } else { known.moved });
        let known = Known { object: after.clone(), changed, served, well, stamped, moved };
        self.dicoms.insert(change.name.clone(), known);
    }

    /// A write of ours to a Dicom: by whoever acts, to what it reserved, and to nobody who is left alone.
    fn ours(&mut self, change: &Change, after: &Value, at: Timestamp) {
        let name = &change.name;
        if change.verb == Verb::Create {
            self.object(at, &format!("{} created {name}", change.user));
            return;
        }
        let before = change.before.as_deref().unwrap_or(&Value::Null);
        if let Some(field) = removed(&before["spec"], &after["spec"]) {
            self.object(at, &format!("{} removed spec.{field} of {name}", change.user));
        }
        if image_of(before) == image_of(after) {
            self.judgement.touches += usize::from(before["spec"] == after["spec"]);
            return;
        }
        self.judgement.stamps += 1;
        self.landed.insert(name.clone());
        if is_left_out(before) {
            self.object(at, &format!("{} stamped {name}, which is not selected", change.user));
        }
        let reserved = |fleet: &Value| reserved(fleet, name, after);
        if !reserved(&self.fleet) && self.is_anothers(change, after, at) {
            return;
        }
        if !self.has(&self.fleet, after) && at.duration_since(self.company_changed) >= self.patience {
            self.object(at, &format!("{} stamped {name}, which another ServiceImage has", change.user));
        }
        if self.former.as_ref().is_some_and(reserved) && !reserved(&self.fleet) {
            // Nobody is left who could know of it.
            self.judgement.orphans += 1;
            return;
        }
        if !is_elsewhere(&self.fleet) {
            self.direction(name, before, after, at);
        }
        let operator = self.fleet.pointer("/status/operator").cloned().unwrap_or_default();
        let acts = operator["identity"].as_str().is_some_and(|id| id.contains(&format!("/{}/", change.user)));
        // Until a successor has touched what was reserved, that may land (H1); the successor itself writes nothing before.
        let settled = operator["predecessorDone"] == json!(true);
        let sent_before = acts
            && !settled
            && decided(after).zip(claimed(&self.fleet)).is_some_and(|(decided, claimed)| decided < claimed);
        // It was reserved before and could not be touched since: nothing was decided about it, and what was sent may still land.
        let untouched =
            claimed(&self.fleet).is_some_and(|claimed| self.reserved.get(name).is_some_and(|at| *at < claimed));
        if acts != settled && !sent_before && (acts || !untouched) {
            self.object(at, &format!("{} stamped {name}, and {operator} acts", change.user));
        }
        if !reserved(&self.fleet) {
            self.object(at, &format!("{} stamped {name}, which is not reserved", change.user));
        }
        if is_manual(before) {
            self.object(at, &format!("{} stamped {name}, whose image a person chose", change.user));
        }
    }

    /// Who has served gets its tier's image and no other; the ServiceImage as it was last seen to be.
    fn direction(&mut self, name: &str, before: &Value, after: &Value, at: Timestamp) {
        let current = self.fleet.pointer("/status/observedGeneration") == self.fleet.pointer("/metadata/generation");
        // What was sent before that may land after it, where it is still reserved.
        let current = current && decided(after) >= self.observed;
        let served = has_served(before) || self.dicoms.get(name).is_some_and(|known| known.served);
        let Some(tier) = tier_of(&self.fleet, before).filter(|_| current && served) else { return };
        let wanted = image_for(&self.fleet, tier).to_owned();
        if image_of(after) != Some(wanted.as_str()) {
            self.object(at, &format!("{name} has served and got {:?} instead of {wanted}", image_of(after)));
        }
    }

    /// A tier is complete only after those above it (E3, E5).
    fn completed(&mut self, after: &Value, at: Timestamp) {
        let tiers =
            |fleet: &Value| fleet.pointer("/status/tierStatus").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_done = |tier: &Value| holds(&json!({"status": tier}), "Complete");
        let same = |a: &Value, b: &Value| a["upgradeTier"] == b["upgradeTier"] && a["image"] == b["image"];
        let all = tiers(after);
        let was: Vec<Value> = tiers(&self.fleet).into_iter().filter(is_done).collect();
        let priority = |tier: &Value| {
            let spec = after["spec"]["tiers"].as_array().into_iter().flatten();
            let mut spec = spec.filter(|one| one["upgradeTier"] == tier["upgradeTier"]);
            spec.next().and_then(|one| one["priority"].as_i64()).unwrap_or(0)
        };
        let current = after.pointer("/status/observedGeneration") == after.pointer("/metadata/generation");
        for tier in all.iter().filter(|tier| current && is_done(tier) && !was.iter().any(|old| same(old, tier))) {
            for above in all.iter().filter(|above| priority(above) > priority(tier) && !is_done(above)) {
                let (name, other) = (&tier["upgradeTier"], &above["upgradeTier"]);
                self.object(at, &format!("tier {name} is complete, and tier {other} above it is not"));
            }
        }
    }

    /// A write to the ServiceImage: a take-over, or a batch that must be in order.
    fn fleet(&mut self, change: &Change, at: Timestamp) {
        if change.verb == Verb::Delete {
            let gone = std::mem::take(&mut self.fleet);
            self.reserved.clear();
            let unfinished =
                gone.pointer("/status/batch").and_then(Value::as_array).is_some_and(|batch| !batch.is_empty());
            // Whoever takes the finalizer away loses what it kept.
            let forced = gone.pointer("/metadata/deletionTimestamp").is_some();
            if unfinished && !forced {
                self.object(at, "it was deleted with writes on their way");
            }
            self.former = (forced && !is_ours(&change.user)).then_some(gone);
            self.company_changed = at;
            return;
        }
        let Some(after) = change.after.as_deref() else { return };
        self.completed(after, at);
        let id = |object: &Value| object.pointer("/status/operator/identity").cloned();
        if id(&self.fleet).is_some() && id(&self.fleet) != id(after) {
            self.judgement.take_overs += 1;
        }
        let generation = |fleet: &Value| fleet.pointer("/status/observedGeneration").cloned();
        if generation(&self.fleet) != generation(after) {
            self.observed = Some(at);
        }
        let batch = after.pointer("/status/batch").and_then(Value::as_array).cloned().unwrap_or_default();
        let names: BTreeSet<&str> = batch.iter().filter_map(|one| one["name"].as_str()).collect();
        // What could not be touched stays reserved, and nothing new is said by that.
        let fresh: BTreeSet<&str> = names.iter().copied().filter(|name| !self.reserved.contains_key(*name)).collect();
        self.reserved.retain(|name, _| names.contains(name.as_str()));
        self.landed.retain(|name| names.contains(name.as_str()) && !fresh.contains(name.as_str()));
        self.reserved.extend(fresh.iter().map(|name| ((*name).to_owned(), at)));
        if is_ours(&change.user) && !fresh.is_empty() {
            if claimed(after).is_none_or(|claimed| at.duration_since(claimed) < LATEST) {
                self.object(at, "a batch is reserved while what was sent before the claim may still land");
            }
            // What is written elsewhere leaves the images that are read here as they are.
            for name in fresh.iter().filter(|_| !is_elsewhere(after)) {
                self.order(after, name, at);
            }
            if !is_elsewhere(after) {
                // Unless whoever sent it stood still, what was sent for a reservation has landed after that time, or never will.
                let may_land = |name: &&str| {
                    let recent = self.reserved.get(*name).is_some_and(|since| at.duration_since(*since) < LATEST);
                    recent && !self.landed.contains(*name)
                };
                let reserved = names.iter().copied().filter(may_land).collect();
                self.limits(after, &reserved, at);
            }
        }
        if self.fleet["spec"] != after["spec"] {
            self.company_changed = at;
        }
        self.fleet = after.clone();
    }

    /// Everybody of a higher priority is up to date before one that serves is reserved (E3).
    fn order(&mut self, fleet: &Value, name: &str, at: Timestamp) {
        let Some(known) = self.dicoms.get(name) else { return };
        if !known.served {
            return;
        }
        let Some(mine) = tier_of(fleet, &known.object) else { return };
        let (priority, mut found) = (mine["priority"].as_i64().unwrap_or(0), Vec::new());
        for (other, theirs) in self.dicoms.iter().filter(|(_, theirs)| self.has(fleet, &theirs.object)) {
            let Some(tier) = tier_of(fleet, &theirs.object) else { continue };
            let manual = is_manual(&theirs.object) || is_left_out(&theirs.object);
            let recent = at.duration_since(theirs.changed) < self.patience;
            if tier["priority"].as_i64().unwrap_or(0) <= priority || manual || recent || !theirs.served {
                continue;
            }
            let wanted = image_for(fleet, tier);
            let failed = theirs.object.pointer("/spec/failureHaltsUpdate") != Some(&json!(true));
            if failed && self.unwritable.contains(other) {
                // What can't be written fails, and halts nobody unless it says so (E4).
                continue;
            }
            if image_of(&theirs.object) != Some(wanted) {
                found.push(format!("{name} is reserved before {other} has {wanted}"));
            } else if !theirs.well.contains(wanted) && !failed {
                found.push(format!("{name} is reserved before {other} is up to date"));
            }
        }
        for violation in found {
            self.object(at, &violation);
        }
    }

    /// No more are on their way in a tier than may be (H2).
    fn limits(&mut self, fleet: &Value, reserved: &BTreeSet<&str>, at: Timestamp) {
        let mut found = Vec::new();
        let limited = fleet["spec"]["tiers"].as_array().into_iter().flatten();
        let limited = limited.filter_map(|tier| Some((Among::Tier(tier), tier["maxInFlight"].as_u64()?)));
        let spread = &fleet["spec"]["spread"];
        let lanes = ["a", "b"].iter().filter_map(|zone| Some((Among::Zone(zone), spread["maxInFlight"].as_u64()?)));
        for (among, limit) in limited.chain(lanes) {
            let mine = self.dicoms.iter().filter(|(_, known)| match among {
                Among::Tier(tier) => tier_of(fleet, &known.object) == Some(tier),
                Among::Zone(zone) => known.object.pointer("/metadata/labels/zone").is_some_and(|label| label == zone),
            });
            let mine = mine.filter(|(_, known)| !is_left_out(&known.object) && self.has(fleet, &known.object));
            let is_seen = |known: &Known| at.duration_since(known.changed) >= self.patience;
            let served = mine.filter(|(_, known)| known.served);
            let is_reserved = |name: &String| reserved.contains(name.as_str());
            // Whoever is on the way already, for all that could be seen, may be sent elsewhere, also where the limit was lowered meanwhile.
            let moved = |known: &Known| known.moved.is_some_and(|moved| at.duration_since(moved) < BELIEVED);
            if served.clone().all(|(name, known)| !is_reserved(name) || known.is_moving() || moved(known)) {
                continue;
            }
            let on_the_way = served.filter(|(name, known)| is_reserved(name) || (known.is_moving() && is_seen(known)));
            let count = on_the_way.count();
            if count as u64 > limit {
                found.push(format!("{count} of {among:?} are on their way, and {limit} may be"));
            }
        }
        for violation in found {
            self.object(at, &violation);
        }
    }
}
