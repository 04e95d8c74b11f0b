//! An upgrade is under way: still the same one?

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    hold::Hold,
    rolling::{
        known::{order::Order, record::Record, step::Decision, view::View},
        mend, owners, poison,
        retarget::{self, correct_version, is_revert, revert},
        roll::roll,
        template::{template_changed, write_template},
        ways::may_go_on,
    },
    strategy::known::{
        decision::{halt, wait_or_halt},
        want::Want,
    },
};

/// The next step of the upgrade that is under way. Done where nothing is left to be done for it.
pub(crate) fn under_way(
    want: &Want,
    view: &View,
    slot: &mut Option<Record>,
    partition: u32,
    now: Timestamp,
) -> Decision {
    let Some(record) = slot else { return Decision::Done };
    let seen = poison::as_if_it_stood(view, record);
    if is_revert(want, record) {
        return revert(want, &seen, record, partition);
    }
    if let Err(hold) = correct_version(want, view, record) {
        return halt(hold);
    }
    match retarget::is_due(want, view, record, now) {
        Ok(true) if bug::active(Bug::MendBeforeTemplate) && record.order == Order::ReverseOrdinal => {
            if let Some(pod) = view.pods.last().filter(|pod| mend::is_broken(want, view, record, pod, now)) {
                return mend::delete(record, pod);
            }
        }
        Ok(true) => return retarget::take_place(want, view, slot, partition, now),
        Ok(false) => {}
        Err(hold) => return wait_or_halt(hold),
    }
    if record.is_put_back() {
        return poison::stay(want, view, record, now);
    }
    if view.resumed && view.workload.image == record.target.image && record.is_changed(view) {
        // A person says that the other template is meant: whoever was replaced for the one before it is replaced once more.
        let given_up = view.pods.iter().filter(|pod| retarget::is_replaced(view, record, pod) && view.is_outdated(pod));
        let given_up: Vec<_> = given_up.map(|pod| pod.name.clone()).collect();
        record.abandoned.extend(given_up);
        record.revision = Some(view.workload.update_revision.clone());
        record.completed.clear();
    }
    if record.is_changed(view) {
        if record.revision.is_some() || (owners::is_set_back(view, record) && !view.resumed) {
            return halt(template_changed(view, record));
        }
        if let Err(hold) = may_go_on(want, record) {
            return wait_or_halt(hold);
        }
        if record.order == Order::ReverseOrdinal {
            record.move_partition(partition, view.workload.replicas);
        }
        return write_template(record, view.workload.replicas);
    }
    let decision = roll(want, view, record, partition, now);
    say_what_waits(want, record, decision)
}

/// Somebody who asks for another target while this one is stuck must learn why nothing happens.
fn say_what_waits(want: &Want, record: &Record, decision: Decision) -> Decision {
    match decision {
        Decision::Halt { on } if want.target != record.target && !want.paused => {
            let message = format!(
                "{}; {} is wanted, and waits until {} is reached or {} is asked for again",
                on.message, want.target.image, record.target, record.from
            );
            halt(Hold::new(on.reason, message))
        }
        Decision::Halt { .. } | Decision::Act(_) | Decision::Wait { .. } | Decision::Done => decision,
    }
}
