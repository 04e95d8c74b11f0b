//! Talking to the applications: facts in, verbs out, no decisions.
