//! What every strategy has in common: how a quorum comes from one version to another is its own affair, and the rest is done once, here.
//!
//! ```text
//!   plan ─┬─ take in   approval, and what the strategy itself notes    what people said and members did since the last look
//!         ├─ heed      request                                        stop, go back, try again: whatever the strategy
//!         │   └─ decide                                               the strategy's own
//!         ├─ note      snapshot, and what the strategy itself notes    what is about to happen, for the record
//!         └─ say       gates, approval                                where every gate stands, and what a person is asked
//! ```
//! `contract` says what a strategy brings, `known` has the types, `course` tells before a look whose word counts, and each of the others is one
//! thing that is decided for all.
//!
//! A strategy brings a folder beside this one with its types and its decisions, and implements [`Strategy`]; see [`crate::rolling`]. What it gets
//! for that: requests (abort, rollback, retry), pause, deadlines that revert, approvals, windows, gates that are asked elsewhere, snapshots, and
//! images that are pulled ahead.

pub mod approval;
pub mod contract;
pub mod course;
pub mod gates;
pub mod known;
pub mod prepull;
pub mod request;
pub mod snapshot;

use jiff::Timestamp;

pub use self::contract::{Plan, Record, Strategy};
use self::known::{
    decision::Decision,
    request::GivenUp,
    want::{Trigger, Want},
};

/// What to do now about one quorum.
pub fn plan<S: Strategy>(want: &Want, view: &S::View, now: Timestamp) -> Plan<S> {
    let view = &*approval::take_in::<S>(want, view);
    let (view, mut record) = S::take_in(want, view, now);
    let view = &*view;
    let mut given_up = request::take_in::<S>(want, view, record.as_mut());
    let mut decision = heed::<S>(want, view, &mut record, given_up.as_ref(), now);
    if request::gives_up::<S>(want, view, record.as_ref(), &decision, now) {
        given_up = Some(request::because_of(want, &decision));
        decision = heed::<S>(want, view, &mut record, given_up.as_ref(), now);
    }
    let attempt = snapshot::attempt::<S>(&decision, view, record.as_ref());
    let decision = S::settle(decision, view, record.as_ref(), now);
    let pursued = want.trigger == Trigger::Version && given_up.is_none();
    let kept = S::note(want, view, record.as_mut(), &decision, pursued, now);
    let (gates, about) = S::outlook(want, view, record.as_ref(), now);
    let approvals = approval::outlook(want, view.as_ref(), about, &gates);
    Plan { decision, record, gates, approvals, given_up, attempt, kept, heard: true }
}

/// What to do, given what is given up.
fn heed<S: Strategy>(
    want: &Want,
    view: &S::View,
    record: &mut Option<S::Record>,
    given_up: Option<&GivenUp>,
    now: Timestamp,
) -> Decision<S::Step> {
    let Some(given_up) = given_up else { return S::decide(want, view, record, now) };
    let instead = request::instead::<S>(want, view, record.as_ref(), given_up);
    let decision = S::decide(&instead, view, record, now);
    request::conclude(want, given_up, record.as_ref(), decision)
}
