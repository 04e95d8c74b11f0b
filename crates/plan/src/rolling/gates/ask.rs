//! The question that every gate is asked: may this pod be taken down now?

use jiff::Timestamp;

use crate::{
    gate::{Outcome, Verdict, When},
    hold::Hold,
    reason::Reason,
    rolling::known::{record::Record, view::View, want::Want, workload::Pod},
    version::Version,
};

/// The question: may this pod be taken down now?
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// What is wanted.
    pub want: &'a Want,
    /// What was seen.
    pub view: &'a View,
    /// The upgrade that is under way; none before it begins.
    pub record: Option<&'a Record>,
    /// What replaced members must run.
    pub version: &'a Version,
    /// Who would be taken down.
    pub victim: &'a Pod,
    /// When.
    pub now: Timestamp,
}

/// How a gate is asked.
#[derive(Clone, Copy)]
pub enum Check {
    /// By what was seen.
    Own(fn(&Ask<'_>) -> Outcome),
    /// It was evaluated elsewhere.
    External,
    /// All that were evaluated elsewhere, are asked then, and have no place of their own in the list.
    Others(When),
}

/// A named condition.
pub struct Gate {
    /// How people call it.
    pub name: &'static str,
    /// What it demands.
    pub check: Check,
    /// A person may set it aside.
    pub overridable: bool,
}

impl Gate {
    /// What guards the quorum, its leader or our own writes.
    pub(crate) const fn firm(name: &'static str, check: fn(&Ask<'_>) -> Outcome) -> Self {
        Self { name, check: Check::Own(check), overridable: false }
    }

    /// What a person asked for, and may set aside.
    pub(crate) const fn policy(name: &'static str, check: fn(&Ask<'_>) -> Outcome) -> Self {
        Self { name, check: Check::Own(check), overridable: true }
    }

    /// What was evaluated elsewhere.
    pub(crate) const fn external(name: &'static str) -> Self {
        Self { name, check: Check::External, overridable: false }
    }

    /// All the others that were evaluated elsewhere.
    pub(crate) const fn others(when: When) -> Self {
        Self { name: "*", check: Check::Others(when), overridable: false }
    }
}

/// Nobody said stop.
pub(crate) fn not_paused(ask: &Ask<'_>) -> Verdict {
    if ask.want.paused { Err(Hold::new(Reason::Paused, "paused")) } else { Ok(()) }
}
