//! What autopilot shows: the active member's knowledge of the others, which is as old as their last echoes.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Context;
use super::{Bao, BaoCluster};

/// How often a standby sends an echo to the active member.
const ECHO: Duration = Duration::from_secs(5);
/// How often autopilot looks at what it knows.
const UPDATE: Duration = Duration::from_secs(2);
/// A member that was heard this long ago is well.
const LAST_CONTACT_THRESHOLD: Duration = Duration::from_secs(10);
/// A member that lags this much is well.
const MAX_TRAILING_LOGS: u64 = 1000;

/// What one member last told the active one.
#[derive(Clone, Copy, Default)]
pub(super) struct Heard {
    at: Duration,
    index: u64,
    term: u64,
}

/// A member's echoes to the present active one.
#[derive(Default)]
pub(super) struct Echo {
    /// When they began, as long as they come.
    first: Option<Duration>,
    /// The last one before that.
    last: Heard,
}

impl Echo {
    /// Nothing has been heard since a leader began at this time.
    pub fn new(began: Duration) -> Self {
        Self { first: None, last: Heard { at: began, index: 0, term: 0 } }
    }

    pub fn begins(&mut self, first: Duration) {
        self.first = Some(first);
    }

    pub fn ends(&mut self, last: Heard) {
        *self = Self { first: None, last };
    }
}

/// The last time by then at which something happened that began at `first` and happens again and again.
fn last_of(first: Duration, every: Duration, now: Duration) -> Duration {
    let times = now.saturating_sub(first).as_millis() / every.as_millis().max(1);
    first + every * u32::try_from(times).unwrap_or(u32::MAX)
}

/// A duration as Go writes it.
fn go(duration: Duration) -> String {
    let (minutes, seconds) = (duration.as_secs() / 60, duration.as_secs() % 60);
    let seconds = match duration.subsec_millis() {
        0 => format!("{seconds}s"),
        millis => format!("{}s", format!("{seconds}.{millis:03}").trim_end_matches('0')),
    };
    match (minutes / 60, minutes % 60) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

impl BaoCluster {
    /// What a member last told the active one by this time.
    pub(super) fn last_echo(&self, member: &Bao, now: Duration) -> Heard {
        match member.echo.first.filter(|first| *first <= now) {
            Some(first) if member.serves() => {
                let at = last_of(first, ECHO, now);
                let index = member.raft.applied(at, self.log.length(at));
                // One that has not come to the present term in the log still speaks of another.
                Heard { at, index, term: if index >= self.term_began { self.term } else { self.term - 1 } }
            }
            Some(_) | None => member.echo.last,
        }
    }

    /// The state as autopilot last computed it.
    pub(super) fn autopilot(&self, context: &Context) -> Value {
        let now = last_of(self.active_since, UPDATE, context.now);
        let length = self.log.length(now);
        let mut servers = serde_json::Map::new();
        let (mut healthy_voters, mut all_healthy) = (0, true);
        for (name, member) in &self.members {
            let leads = self.active.as_ref() == Some(name);
            let heard =
                if leads { Heard { at: now, index: length, term: self.term } } else { self.last_echo(member, now) };
            let contact = now.saturating_sub(heard.at);
            let healthy = contact <= LAST_CONTACT_THRESHOLD
                && heard.term == self.term
                && heard.index + MAX_TRAILING_LOGS >= length;
            all_healthy &= healthy;
            healthy_voters += usize::from(healthy && member.voter);
            let since = match member.echo.first {
                _ if contact > LAST_CONTACT_THRESHOLD => heard.at + LAST_CONTACT_THRESHOLD,
                Some(first) if !leads => first,
                Some(_) | None => self.active_since,
            };
            let kind = if member.voter { "voter" } else { "non-voter" };
            let server = json!({
                "id": member.node_id,
                "name": member.node_id,
                "address": self.raft_address(name),
                "node_status": "alive",
                "last_contact": go(contact),
                "last_term": heard.term,
                "last_index": heard.index,
                "healthy": healthy,
                "stable_since": context.time(since).to_string(),
                "status": if leads { "leader" } else { kind },
                "version": member.raft.version.trim_start_matches('v'),
                "node_type": kind,
            });
            servers.insert(member.node_id.clone(), server);
        }
        let id = |member: &Bao| member.node_id.clone();
        let leader = self.active.as_ref().and_then(|active| self.members.get(active)).map(id).unwrap_or_default();
        // The leader first, and then the others by their IDs.
        let mut voters: Vec<String> = self.voters().map(|(_, member)| id(member)).collect();
        voters.sort_by_key(|id| (*id != leader, id.clone()));
        let required = voters.len() / 2 + 1;
        let mut state = json!({
            "failure_tolerance": healthy_voters.saturating_sub(required),
            "healthy": all_healthy,
            "leader": leader,
            "servers": servers,
            "voters": voters,
        });
        let others: Vec<String> = self.members.values().filter(|member| !member.voter).map(id).collect();
        if !others.is_empty() {
            state["non_voters"] = json!(others);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        let texts = [0, 3075, 10_000, 61_500, 7_200_000].map(|millis| go(Duration::from_millis(millis)));
        assert_eq!(texts, ["0s", "3.075s", "10s", "1m1.5s", "2h0m0s"]);
    }
}
