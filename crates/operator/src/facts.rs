//! From what every pod said to what is known of the quorum, one module per system. Pure.
//!
//! Pods that contradict each other make a fact unknown; they are not outvoted. Silence is not death: a pod that did not answer has
//! said nothing. Who leads is known only if all who answered agree.

pub mod etcd;
pub mod openbao;
pub mod pd;

use windlass_systems::CallError;

/// Why nobody, or not everybody, told anything.
fn silence<'a>(errors: impl Iterator<Item = &'a CallError>) -> String {
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    if errors.is_empty() { "no pod has an address yet".into() } else { errors.join("; ") }
}
