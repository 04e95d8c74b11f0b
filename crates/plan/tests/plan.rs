//! Decisions from the outside: what `rolling::plan` answers to what was seen.

#[cfg(test)]
mod decisions;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod support;
