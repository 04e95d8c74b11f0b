//! Who is there: the pods of the set as the API server shows them, for the load and the witness to follow.

use std::{net::SocketAddr, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use crate::{
    client::{Application, allowed},
    witness::Seat,
};

const PERIOD: Duration = Duration::from_millis(200);

/// Follows the pods until it is dropped.
pub struct Roster {
    /// All places, with or without an address.
    pub seats: watch::Receiver<Vec<Seat>>,
    /// The addresses that a client would use: of pods that are there and not about to go.
    pub endpoints: watch::Receiver<Vec<SocketAddr>>,
    task: JoinHandle<()>,
}

impl Roster {
    /// Starts to follow the pods of a set of so many.
    pub fn follow(pods: Api<Pod>, application: Application, replicas: usize) -> Self {
        let empty = (0..replicas).map(|ordinal| Seat { pod: application.pod(ordinal), address: None }).collect();
        let (seats_in, seats) = watch::channel(empty);
        let (endpoints_in, endpoints) = watch::channel(Vec::new());
        let task = tokio::spawn(async move {
            let mut ticks = interval(PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                // What can't be listed now is listed at the next tick: the last list stands until then.
                let Ok(list) = pods.list(&ListParams::default()).await else { continue };
                let (now, addresses) = read(&list.items, application, replicas);
                if allowed(&addresses).is_err() {
                    continue;
                }
                seats_in.send_if_modified(|before| replace(before, now));
                endpoints_in.send_if_modified(|before| replace(before, addresses));
            }
        });
        Self { seats, endpoints, task }
    }

    /// The address of a pod's member.
    pub fn address(&self, pod: &str) -> Option<SocketAddr> {
        self.seats.borrow().iter().find(|seat| seat.pod == pod).and_then(|seat| seat.address)
    }
}

impl Drop for Roster {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn replace<T: PartialEq>(before: &mut T, now: T) -> bool {
    let changed = *before != now;
    *before = now;
    changed
}

fn read(pods: &[Pod], application: Application, replicas: usize) -> (Vec<Seat>, Vec<SocketAddr>) {
    let address = |pod: &Pod| {
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        Some(SocketAddr::new(ip, application.port()))
    };
    let seat = |ordinal: usize| {
        let name = application.pod(ordinal);
        let address = pods.iter().find(|pod| pod.name_any() == name).and_then(address);
        Seat { pod: name, address }
    };
    // Other pods may be in the namespace; the load is for the members.
    let is_member = |pod: &&Pod| (0..replicas).any(|ordinal| application.pod(ordinal) == pod.name_any());
    let staying = pods.iter().filter(is_member).filter(|pod| pod.metadata.deletion_timestamp.is_none());
    ((0..replicas).map(seat).collect(), staying.filter_map(address).collect())
}
