//! What keeps a pod from getting ready, as Kubernetes shows it on the pod itself, named for a person.
//!
//! ```text
//!   no node takes it ─▶ image ─▶ container made ─▶ process runs ─▶ ready ─▶ (from here on: the member, see gate)
//!   Unschedulable       Unusable  Config            CrashLoop
//!                       Pull
//! ```
//! A trouble is told as soon as it shows. Whether it stalls at once or only at its stage's deadline is the reason's own:
//! [`Reason::stalls`].

use std::fmt;

use crate::reason::Reason;

/// How a container's process ended last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code.
    pub code: i32,
    /// The signal that ended it, where the runtime tells.
    pub signal: Option<i32>,
    /// The runtime's word for it: Error, `OOMKilled`, Completed.
    pub reason: String,
    /// What the process left as its termination message; often nothing.
    pub message: String,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.code)?;
        if let Some(signal) = self.signal {
            write!(f, ", signal {signal}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ", {}", self.reason)?;
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ", {LEFT}{}\"", quotable(&self.message)) }
    }
}

/// What comes before a process's own words, up to the next quotation mark.
const LAST_LINE: &str = "last line of its log: \"";
const LEFT: &str = "its last message: \"";

/// Words that can't end their own quotation.
fn quotable(words: &str) -> String {
    words.replace('"', "'")
}

/// A message without what processes said themselves: for those who may read it and perhaps not the resource (H41).
pub fn without_their_words(message: &str) -> String {
    let mut rest = message;
    let mut told = String::with_capacity(message.len());
    while let Some((at, mark)) =
        [LAST_LINE, LEFT].iter().filter_map(|mark| rest.find(mark).map(|at| (at, mark.len()))).min()
    {
        let (before, quoted) = rest.split_at(at);
        told.push_str(before);
        told.push_str("its own words are in the status");
        // One that does not end is all there is.
        rest = quoted.get(mark..).and_then(|words| words.split_once('"')).map_or("", |(_, after)| after);
    }
    told.push_str(rest);
    told
}

/// Where a person finds out more about a process: a hint in a message, and nothing that is decided from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// How it is read.
    Command(String),
    /// What it ends with.
    LastLine(String),
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "its log: {command}"),
            Self::LastLine(line) => write!(f, "{LAST_LINE}{}\"", quotable(line)),
        }
    }
}

/// A named trouble of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No node takes it.
    Unschedulable {
        /// The scheduler's words.
        message: String,
    },
    /// The image's name is none, or the image may not be pulled and is not on the node.
    ImageUnusable {
        /// Which container; an init container is said to be one.
        container: String,
        /// Its image.
        image: String,
        /// The kubelet's words.
        message: String,
    },
    /// The image can't be had from its registry.
    ImagePull {
        /// Which container.
        container: String,
        /// Its image.
        image: String,
        /// The registry's words.
        message: String,
    },
    /// The container can't be made or started: a ConfigMap, a Secret, a volume, a command that is not there.
    Config {
        /// Which container.
        container: String,
        /// The kubelet's word for it.
        reason: String,
        /// Its words.
        message: String,
    },
    /// The process ends again and again.
    CrashLoop {
        /// Which container.
        container: String,
        /// Its image.
        image: String,
        /// How often it was started again.
        restarts: u32,
        /// How it ended last, where that is told.
        exit: Option<Exit>,
    },
}

impl Trouble {
    /// The reason that conditions and events carry.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Unschedulable { .. } => Reason::Unschedulable,
            Self::ImageUnusable { .. } => Reason::ImageUnusable,
            Self::ImagePull { .. } => Reason::ImagePullFailed,
            Self::Config { .. } => Reason::ContainerConfigError,
            Self::CrashLoop { .. } => Reason::CrashLooping,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable { message } => write!(f, "no node takes it: {message}"),
            Self::ImageUnusable { container, image, message } => {
                write!(f, "{container} can't use image {image}: {message}")
            }
            Self::ImagePull { container, image, message } => {
                write!(f, "{container} can't pull image {image}: {message}")
            }
            Self::Config { container, reason, message } => {
                write!(f, "{container} can't be started: {reason}: {message}")
            }
            Self::CrashLoop { container, image, restarts, exit } => {
                write!(f, "{container} of image {image} keeps ending ({restarts} restarts)")?;
                exit.as_ref().map_or(Ok(()), |exit| write!(f, ", last with {exit}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exit, Log, without_their_words};

    #[test]
    fn h41_what_processes_say_themselves_can_be_left_out() {
        let line = Log::LastLine("\"key\": \"hunter2\"; last line of its log: \"hunter3\"".to_owned());
        let exit = Exit { code: 1, signal: None, reason: "Error".into(), message: "password \"hunter4\"".into() };
        let message = format!("pd-2 keeps ending, last with {exit}; {line}; read it");
        assert!(message.contains("hunter2") && message.contains("hunter4"));
        let told = without_their_words(&message);
        assert!(!told.contains("hunter"), "{told}");
        assert!(
            told.starts_with("pd-2 keeps ending, last with exit code 1, Error, ") && told.ends_with("; read it"),
            "{told}"
        );
        assert!(!without_their_words(message.split("hunter3").next().unwrap_or_default()).contains("hunter"));
        assert_eq!(without_their_words("nothing was said"), "nothing was said");
    }
}
