//! An application without a cluster around it: processes are started and stopped by hand, and time is moved by hand. For holding a
//! simulated application to the real one.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{Request, Response};

use super::{Answer, App, AppEvent, Context, Founding, Kind};
use crate::clock::EPOCH;
use crate::rng::Rng;

/// One application on the bench.
pub struct Bench {
    app: App,
    now: Duration,
    /// Timers by the time at which they ring, and the order in which they were set.
    timers: BTreeMap<(Duration, u64), AppEvent>,
    set: u64,
}

impl Bench {
    /// An etcd with these members, none of which runs yet.
    pub fn etcd(seed: u64, members: &[&str]) -> Self {
        Self::of(Kind::Etcd, "etcd", seed, members)
    }

    /// An OpenBao with these members, none of which runs yet.
    pub fn openbao(seed: u64, members: &[&str]) -> Self {
        Self::of(Kind::Openbao, "openbao", seed, members)
    }

    /// A PD with these members, none of which runs yet.
    pub fn pd(seed: u64, members: &[&str]) -> Self {
        Self::of(Kind::Pd, "pd", seed, members)
    }

    fn of(kind: Kind, workload: &str, seed: u64, members: &[&str]) -> Self {
        let founding = Founding {
            namespace: "bench".into(),
            workload: workload.into(),
            service: workload.into(),
            members: members.iter().map(|name| (*name).to_owned()).collect(),
        };
        let app = App::found(kind, founding, Rng::new(seed));
        Self { app, now: Duration::ZERO, timers: BTreeMap::new(), set: 0 }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut App, &mut Context) -> T) -> T {
        let mut context = Context { epoch: EPOCH, now: self.now, later: Vec::new() };
        let result = act(&mut self.app, &mut context);
        for (at, event) in context.later {
            self.set += 1;
            self.timers.insert((at, self.set), event);
        }
        result
    }

    /// Starts a process; the error is what it says before it ends at once.
    pub fn start(&mut self, member: &str, version: &str) -> Result<(), String> {
        if let Some(why) = self.app.refusal(member, version) {
            return Err(why);
        }
        self.with(|app, context| app.started(context, member, version));
        Ok(())
    }

    /// Ends a process with a signal, so that it can hand over.
    pub fn stop(&mut self, member: &str) {
        self.with(|app, context| app.stopped(context, member, true));
    }

    /// Kills a process.
    pub fn kill(&mut self, member: &str) {
        self.with(|app, context| app.stopped(context, member, false));
    }

    /// Members of an OpenBao unseal themselves from now on when they start, or don't any more.
    pub fn auto_unseal(&mut self, works: bool) {
        self.with(|app, context| app.auto_unseal(context, works));
    }

    /// Unseals a member of an OpenBao.
    pub fn unseal(&mut self, member: &str) {
        self.with(|app, context| app.unseal(context, member));
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(((at, _), event)) = self.timers.first_key_value().map(|(key, event)| (*key, event.clone())) {
            if at > until {
                break;
            }
            self.timers.pop_first();
            self.now = self.now.max(at);
            self.with(|app, context| app.ring(context, &event));
        }
        self.now = until;
    }

    /// Asks a process, and waits for its answer; none where it never comes.
    pub fn ask(&mut self, member: &str, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let Answer { response, after, .. } = self.with(|app, context| app.answer(context, member, request))?;
        self.pass(after);
        Some(response)
    }
}
