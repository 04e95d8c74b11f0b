//! From a system as the resource describes it to one that can be asked. Pure; what was read once is kept.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use http::Method;
use windlass_api::quorum_cluster::{
    http::{HandOverMethod, Http, HttpHandOver, Question, QuestionMethod},
    system::System,
};
use windlass_systems::http::{self as described, Description, HandOver, Invalid, Part};

use super::system as adapter;
use crate::queue::Key;

/// How many descriptions are kept.
const MOST: usize = 256;

type Read = Result<Arc<described::System>, Invalid>;

/// Descriptions that were read, the last one of each resource: reading expressions takes a thread with a large stack, and a resource is
/// looked at every few seconds.
#[derive(Default)]
pub struct Descriptions(Mutex<BTreeMap<Key, (Http, Read)>>);

impl Descriptions {
    /// The system that this resource describes; none where the type says all.
    pub fn get(&self, key: &Key, written: &System) -> Result<Option<Arc<described::System>>, Invalid> {
        let Some(http) = &written.http else { return Ok(None) };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, read)) = kept.get(key).filter(|(known, _)| known == http) {
            return read.clone().map(Some);
        }
        let read = match system(written) {
            Ok(None) => return Ok(None),
            Ok(Some(system)) => Ok(Arc::new(system)),
            Err(error) => Err(error),
        };
        if kept.len() >= MOST {
            // Whoever is forgotten is read again.
            kept.pop_first();
        }
        kept.insert(key.clone(), (http.clone(), read.clone()));
        read.map(Some)
    }

    /// Forgets a resource that is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The system that is described; none where the type says all.
pub fn system(system: &System) -> Result<Option<described::System>, Invalid> {
    adapter::of(system.type_).description(system).map(|http| described::System::new(&description(http))).transpose()
}

fn description(http: &Http) -> Description {
    // Destructured whole: a field that is forgotten here would never be asked.
    let Http { health, leader, version, position, id, members, hand_over, token_header } = http;
    Description {
        health: question(health),
        leader: question(leader),
        version: question(version),
        position: position.as_ref().map(question),
        id: id.as_ref().map(question),
        members: members.as_ref().map(question),
        hand_over: told(hand_over),
        token_header: token_header.clone(),
    }
}

fn question(written: &Question) -> described::Question {
    let Question { method, path, headers, body, cel } = written.clone();
    let method = match method {
        QuestionMethod::Get => Method::GET,
        QuestionMethod::Post => Method::POST,
    };
    described::Question { method, path, headers, body, cel }
}

fn told(written: &HttpHandOver) -> HandOver {
    let HttpHandOver { method, path, path_cel, headers, body, body_cel } = written.clone();
    let method = match method {
        HandOverMethod::Post => Method::POST,
        HandOverMethod::Put => Method::PUT,
        HandOverMethod::Get => Method::GET,
    };
    // The schema takes one of each pair.
    let path = path_cel.map_or_else(|| Part::Plain(path.unwrap_or_default()), Part::Cel);
    HandOver { method, path, headers, body: body_cel.map(Part::Cel).or(body.map(Part::Plain)) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_api::QuorumCluster;

    use super::{Descriptions, MOST};
    use crate::queue::Key;

    fn example() -> QuorumCluster {
        serde_saphyr::from_str(include_str!("../../../../docs/examples/http-etcd.yaml")).unwrap()
    }

    fn key(number: usize) -> Key {
        Key { namespace: "registry".into(), name: format!("etcd-{number:04}") }
    }

    #[test]
    fn a_description_is_read_once_until_it_changes() {
        let (descriptions, mut resource) = (Descriptions::default(), example());
        let get = |resource: &QuorumCluster| descriptions.get(&key(0), &resource.spec.system);
        let first = get(&resource).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &get(&resource).unwrap().unwrap()));
        resource.spec.system.port = 4001;
        assert!(Arc::ptr_eq(&first, &get(&resource).unwrap().unwrap()), "where it listens is none of it");
        resource.spec.system.http.as_mut().unwrap().version.cel = "body.".into();
        assert!(get(&resource).is_err(), "neither the old one nor silence");
        assert!(get(&resource).is_err());
        assert!(!Arc::ptr_eq(&first, &get(&example()).unwrap().unwrap()));
    }

    #[test]
    fn so_many_are_kept_and_no_more() {
        let (descriptions, resource) = (Descriptions::default(), example());
        for number in 0..MOST + 2 {
            descriptions.get(&key(number), &resource.spec.system).unwrap();
        }
        assert_eq!(descriptions.0.lock().unwrap().len(), MOST);
        descriptions.forget(&key(MOST));
        assert_eq!(descriptions.0.lock().unwrap().len(), MOST - 1);
    }
}
