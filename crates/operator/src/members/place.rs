//! Where a member is, and what a system says of all of them.

use std::{collections::BTreeMap, net::IpAddr};

use windlass_plan::{Fact, MemberName, Quorum, quorum::Seat};

/// Where a member of the set is, whether or not its pod exists at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The pod's name.
    pub pod: String,
    /// The name that the set's service gives it, up to `svc`.
    pub dns: String,
    /// Its address, while it has one.
    pub address: Option<IpAddr>,
}

impl Place {
    /// Whether a host is this pod: its address, or its DNS name in any of the lengths that resolve in the cluster.
    pub fn is_at(&self, host: &str) -> bool {
        let begins = |long: &str, short: &str| {
            !short.is_empty() && long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        begins(&self.dns, host)
            || begins(host, &self.dns)
            || self.address.is_some_and(|address| host.parse() == Ok(address))
    }
}

/// What a system says of itself, and what it calls its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Members, by the names of their pods, and who leads.
    pub quorum: Quorum,
    /// How the system itself calls each member when it is told about it.
    pub ids: BTreeMap<MemberName, String>,
}

impl Seen {
    /// What a system says whose members are in these places: facts call a member like the pod that it is in, and whoever is called like
    /// none of them is in none that is known.
    pub fn new(mut quorum: Quorum, ids: BTreeMap<MemberName, String>, places: &[Place]) -> Self {
        if let Fact::Known(members) = &mut quorum.members {
            for (name, member) in members {
                let place = places.iter().find(|place| place.pod == name.as_str());
                member.seat = place.and_then(|place| Seat::of_pod(&place.pod));
            }
        }
        Self { quorum, ids }
    }

    /// Nothing is known.
    pub fn unknown(why: &str) -> Self {
        Self { quorum: Quorum::unknown(why), ids: BTreeMap::new() }
    }

    /// Nothing is known, for the token is refused.
    pub fn refused(why: &str) -> Self {
        Self { quorum: Quorum::refused(why), ids: BTreeMap::new() }
    }
}
