//! From what every pod said to what is known of the quorum, one module per system. Pure.
//!
//! Pods that contradict each other make a fact unknown; they are not outvoted. Silence is not death: a pod that did not answer has
//! said nothing. Who leads is known only if all who answered agree.

pub mod etcd;
pub mod http;
pub mod openbao;
pub mod pd;

/// Why nobody, or not everybody, told anything.
fn silence(errors: impl Iterator<Item: ToString>) -> String {
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    if errors.is_empty() { "no pod has an address yet".into() } else { errors.join("; ") }
}
