//! No member goes to an older version without anybody having asked for that (X1, H15).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use windlass_sim::journal::{Change, Event, QuorumTruth};

use super::{
    Judge, REACTION, Verdict,
    deed::{Cause, Deed, Gone, Step},
    record::{Name, Set, around, images, is_at_rest, set_of, wish},
};
use crate::trial::is_ours;

#[derive(Default)]
pub(super) struct Backwards(BTreeMap<Name, Versions>);

/// The versions of a set.
#[derive(Default)]
struct Versions {
    /// What was asked for since all members last ran one version.
    wanted: Vec<String>,
    /// That version.
    home: Option<String>,
    /// When a member of a version first led since then.
    led: BTreeMap<String, Timestamp>,
    /// Whom the controller let go for a template that nobody asked us for, and who are not back yet.
    let_go_by_others: BTreeSet<String>,
}

impl Judge for Backwards {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.event {
            Event::Write(change) => self.ask(change),
            Event::Quorum(truth) => self.truth(truth, step, verdict),
            Event::Verb { .. } | Event::Note(_) => {}
        }
        match step.deed {
            Deed::Deleted(gone) => self.deleted(gone, step, verdict),
            // The controller deletes before it says in the status that their template is the newest.
            Deed::Replaced(gone, Cause::Us | Cause::Others(_) | Cause::Nobody) => {
                let set = step.record.set(&gone.set);
                if set.is_some_and(|set| set.upgrading && set.foreign_images && !set.wish.follows) {
                    self.of(&gone.set).let_go_by_others.insert(gone.pod.1.clone());
                }
            }
            Deed::Wrote(_) | Deed::Drained(_) | Deed::Made(_) | Deed::Other => {}
        }
    }
}

impl Backwards {
    fn of(&mut self, set: &Name) -> &mut Versions {
        self.0.entry(set.clone()).or_default()
    }

    /// A version is asked for in the QuorumCluster, or by another image in somebody else's template.
    fn ask(&mut self, change: &Change) {
        if let Some((name, spec)) = wish(change)
            && let Some(version) = spec["version"].as_str()
        {
            let wanted = &mut self.of(&name).wanted;
            let version = plain(version);
            if wanted.last() != Some(&version) {
                wanted.push(version);
            }
        }
        if change.resource == "statefulsets.apps" && !is_ours(&change.user) {
            let (before, after) = around(change);
            let (before, after) =
                (images(before.pointer("/spec/template/spec")), images(after.pointer("/spec/template/spec")));
            if before != after {
                let name = (change.namespace.clone(), change.name.clone());
                self.of(&name).wanted.extend(after.iter().filter_map(|image| tag(image)));
            }
        }
    }

    fn truth(&mut self, truth: &QuorumTruth, step: &Step<'_>, verdict: &mut Verdict) {
        let name = set_of(truth);
        let nothing = Set::default();
        let set = step.record.set(&name).unwrap_or(&nothing);
        let down = step.record.still_down(truth);
        let before = set.truths.last().map(|(_, before)| before);
        let versions = self.of(&name);
        for member in &truth.members {
            let old = before.and_then(|before| before.members.iter().find(|old| old.pod == member.pod));
            if let Some(old) = old
                && older(&member.version, &old.version)
                && let Some(why) = versions.unasked(set, &member.version, &old.version)
            {
                let home = versions.home.as_deref() == Some(&plain(&member.version));
                // It was lost by somebody else's doing, and comes back from what somebody else wrote.
                let theirs = set.foreign_images && !set.wish.follows && !set.down.contains(&member.pod);
                if theirs || (home && versions.let_go_by_others.contains(&member.pod)) {
                    // Somebody's template had it deleted before anybody could hold it, and held it comes back as all were before.
                    verdict.races += 1;
                } else {
                    let (from, to) = (&old.version, &member.version);
                    verdict.object(step.at, &format!("{} went back from {from} to {to}: {why}", member.pod));
                }
            }
            if old.is_some_and(|old| old.version != member.version) {
                versions.let_go_by_others.remove(&member.pod);
            }
            if member.leader {
                versions.led.entry(plain(&member.version)).or_insert(step.at);
            }
        }
        if is_at_rest(truth, &down) {
            versions.settle(truth);
        }
    }

    /// Where the template is somebody else's, a deletion of ours is what brings an older version.
    fn deleted(&mut self, gone: &Gone, step: &Step<'_>, verdict: &mut Verdict) {
        let Some(set) = step.record.set(&gone.set) else { return };
        let pod = &gone.pod.1;
        if !set.wish.follows || set.wish.allow_downgrade || !set.sound_and_leading(pod).0 {
            return;
        }
        let to = set.template().iter().find_map(|image| tag(image)).unwrap_or_default();
        let led = &self.of(&gone.set).led;
        if let Some((led, _)) = led.iter().find(|(led, since)| older(&to, led) && **since + REACTION < step.at) {
            verdict.object(step.at, &format!("{pod} deleted by us for the older {to} although {led} had led"));
        }
    }
}

impl Versions {
    /// All members run one version, and only what was asked for last may be wanted still.
    fn settle(&mut self, truth: &QuorumTruth) {
        let home = truth.members.first().map(|member| plain(&member.version));
        let last = self.wanted.pop();
        self.wanted.clear();
        self.wanted.extend(last.filter(|last| Some(last) != home.as_ref()));
        self.home = home;
        let leader = truth.members.iter().find(|member| member.leader).map(|leader| plain(&leader.version));
        self.led.retain(|version, _| Some(version) == leader.as_ref());
    }

    /// Why a step back was not asked for.
    fn unasked(&self, set: &Set, to: &str, from: &str) -> Option<String> {
        if set.wish.allow_downgrade {
            return None;
        }
        let returns = set.wish.may_return && self.home.as_deref() == Some(&plain(to));
        if !self.wanted.contains(&plain(to)) && !returns {
            return Some("nobody asked for that version".to_owned());
        }
        let led = self.led.get(&plain(from))?;
        let written = set.template_written?;
        (*led + REACTION < written).then(|| format!("{from} had led, and no downgrade was allowed"))
    }
}

/// The version that an image's tag names.
fn tag(image: &str) -> Option<String> {
    let (_, tag) = image.trim_matches('"').rsplit_once(':')?;
    Some(plain(tag))
}

fn plain(version: &str) -> String {
    version.trim_start_matches('v').to_owned()
}

fn older(one: &str, other: &str) -> bool {
    let numbers = |text: &str| {
        plain(text).split(['.', '-', '+']).map(|part| part.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>()
    };
    numbers(one) < numbers(other)
}
