//! From what every pod said to what is known of the quorum: what the `facts` of all systems begin with. Pure, as they are.
//!
//! Pods that contradict each other make a fact unknown; they are not outvoted. Silence is not death: a pod that did not answer has
//! said nothing. Who leads is known only if all who answered agree.

use windlass_systems::call::Answer;

/// Who answered, and what they said.
pub fn said<S, E>(answers: &[Answer<S, E>]) -> Vec<(&str, &S)> {
    answers.iter().filter_map(|answer| answer.said.as_ref().ok().map(|said| (answer.pod.as_str(), said))).collect()
}

/// Why nobody, or not everybody, told anything.
pub fn silence<S, E: ToString>(answers: &[Answer<S, E>]) -> String {
    let errors: Vec<String> =
        answers.iter().filter_map(|answer| answer.said.as_ref().err()).map(ToString::to_string).collect();
    if errors.is_empty() { "no pod has an address yet".into() } else { errors.join("; ") }
}
