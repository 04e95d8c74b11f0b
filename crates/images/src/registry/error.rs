//! Why a registry's answer is not known or can't be used, and who can end that.

use std::{fmt, io, time::Duration};

use windlass_systems::Fault;

use crate::{
    Mismatch,
    document::{Unreadable, cut},
    reference::InvalidReference,
    registry::route::Refusal,
};

/// What was asked of which registry: the part of every message that tells a person where to look. It holds no query, no header and no body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The registry, as references write it.
    pub registry: String,
    /// What it was asked for.
    pub what: String,
    /// Who was asked instead, where the registry led there.
    pub at: Option<String>,
}

impl Asked {
    pub(super) fn failed(&self, failure: impl Into<Failure>) -> RegistryError {
        RegistryError(Box::new(Inner { asked: self.clone(), failure: failure.into() }))
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{} at {at}, for {}", self.what, self.registry),
            None => write!(f, "{} at {}", self.what, self.registry),
        }
    }
}

/// Why a registry's answer is not known or can't be used. Its texts are bounded, and hold neither secrets nor anything that a registry said in
/// its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    asked: Asked,
    failure: Failure,
}

/// What was shown to a registry that said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing: no pull secret is for it.
    Nothing,
    /// Nothing: a configuration says that a program has the passwords.
    NothingByPlugin,
    /// What the pull secrets hold.
    Password,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The name has no address.
    NoAddress(String),
    /// Nobody listens there.
    Unconnected,
    /// No answer in time, or no further piece of it.
    TimedOut,
    /// The connection failed in another way.
    Broken(String),
    /// The registry says that it is out of order.
    OutOfOrder {
        /// The HTTP status.
        code: u16,
    },
    /// The two sides could not agree that they are who they say.
    Untrusted(String),
    /// The registry has no time now.
    Busy {
        /// The HTTP status.
        code: u16,
        /// How long to wait, where it says so.
        after: Option<Duration>,
    },
    /// The registry wants to know who is asking, or does not let this caller.
    Denied {
        /// The HTTP status.
        code: u16,
        /// The specification's words for it, where the registry used them.
        why: Option<&'static str>,
        /// What it was shown.
        shown: Shown,
    },
    /// The registry said no in another way.
    Status {
        /// The HTTP status.
        code: u16,
        /// The specification's words for it, where the registry used them.
        why: Option<&'static str>,
    },
    /// There is no such thing.
    Missing,
    /// The registry leads where requests don't go.
    Led(Refusal),
    /// What was asked for is nothing that a registry has.
    Name(InvalidReference),
    /// The bytes are not those that the digest names.
    Wrong(Mismatch),
    /// The bytes end before the size that was promised.
    TooShort {
        /// How many were promised.
        size: u64,
        /// How many came.
        came: u64,
    },
    /// There are more bytes than were promised.
    TooLong {
        /// How many were promised.
        size: u64,
    },
    /// The bytes can't be read as what they should be.
    Unreadable(Unreadable),
    /// The answer is not one that the specification knows.
    Garbled(&'static str),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Led(refusal)
    }
}

impl From<Mismatch> for Failure {
    fn from(mismatch: Mismatch) -> Self {
        Self::Wrong(mismatch)
    }
}

impl From<Unreadable> for Failure {
    fn from(why: Unreadable) -> Self {
        Self::Unreadable(why)
    }
}

impl From<InvalidReference> for Failure {
    fn from(why: InvalidReference) -> Self {
        Self::Name(why)
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        if let Some(fault) = error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
            return match fault {
                Fault::Untrusted(check) => Self::Untrusted(cut(check)),
                Fault::TooLarge => Self::Garbled("it is longer than anything that was asked for"),
            };
        }
        if error.kind() == io::ErrorKind::ConnectionRefused {
            return Self::Unconnected;
        }
        if error.kind() == io::ErrorKind::TimedOut {
            return Self::TimedOut;
        }
        Self::Broken(cut(&error.to_string()))
    }
}

/// What kind of trouble a [`RegistryError`] is, and so who can end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing was heard that counts. Time can heal it.
    Silent,
    /// It has no time now, and may say when it has. Time heals it.
    Busy,
    /// It wants credentials, or others, or says no for a reason of its own. A person has to look.
    Refused,
    /// There is no such thing.
    Missing,
    /// The bytes are not what they should be. Nothing of them is used.
    Corrupt,
    /// Certificates or names don't match. A person has to look.
    Untrusted,
    /// It leads, or is asked to lead, where Windlass does not go. A person has to look.
    Forbidden,
}

impl RegistryError {
    /// What was asked, and which registry.
    pub fn asked(&self) -> &Asked {
        &self.0.asked
    }

    /// What went wrong.
    pub fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// What kind of trouble this is.
    pub fn class(&self) -> Class {
        match self.failure() {
            Failure::NoAddress(_)
            | Failure::Unconnected
            | Failure::TimedOut
            | Failure::Broken(_)
            | Failure::OutOfOrder { .. } => Class::Silent,
            Failure::Untrusted(_) => Class::Untrusted,
            Failure::Busy { .. } => Class::Busy,
            Failure::Denied { .. } | Failure::Status { .. } => Class::Refused,
            Failure::Missing => Class::Missing,
            Failure::Led(_) | Failure::Name(_) => Class::Forbidden,
            Failure::Wrong(_)
            | Failure::TooShort { .. }
            | Failure::TooLong { .. }
            | Failure::Unreadable(_)
            | Failure::Garbled(_) => Class::Corrupt,
        }
    }

    /// How long to wait before asking again, where the registry said so.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Failure::Busy { after, .. } = self.failure() { *after } else { None }
    }

    /// What a person should look at first.
    pub fn next_step(&self) -> &'static str {
        match self.failure() {
            Failure::NoAddress(_) => "check the registry's name, and that the cluster's DNS knows it",
            Failure::Unconnected | Failure::TimedOut | Failure::Broken(_) => {
                "check that the registry runs and that network policies let the operator reach it; \
                 a registry without TLS must be listed as insecure"
            }
            Failure::OutOfOrder { .. } => "check the registry's log",
            Failure::Untrusted(_) => {
                "check the names in the registry's certificate, and give its CA to the operator if it is not a public one"
            }
            Failure::Busy { .. } => "wait; a pull secret may raise the registry's limit",
            Failure::Denied { shown: Shown::Nothing, .. } => {
                "check the image's name; if the repository is private, add a pull secret for this registry to the pods or to their ServiceAccount"
            }
            Failure::Denied { shown: Shown::NothingByPlugin, .. } => {
                "nodes pull from here by a credential plugin, which Windlass can't use; \
                 add a pull secret with a password or token that may read this repository"
            }
            Failure::Denied { shown: Shown::Password, .. } => {
                "check that the pull secret is current and may read this repository"
            }
            Failure::Status { .. } => "check the image's name, and the registry's log for the reason",
            Failure::Missing => "check the image's name and tag, and that it was pushed to this registry",
            Failure::Led(_) => {
                "check the registry's name and where it redirects: it must not lead closer to the cluster than it is itself, \
                 and one at this machine's own address must be listed with its CA or as insecure"
            }
            Failure::Name(_) => "correct the image's name",
            Failure::Wrong(_) | Failure::TooShort { .. } | Failure::TooLong { .. } => {
                "don't use this registry until it is known why; push the image again, and look for a proxy on the way"
            }
            Failure::Unreadable(_) | Failure::Garbled(_) => {
                "check that this is a container registry, and push the image again with a current tool"
            }
        }
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { asked, failure } = self.0.as_ref();
        let because = |why: Option<&'static str>| why.map(|why| format!(" ({why})")).unwrap_or_default();
        match failure {
            Failure::NoAddress(why) => write!(f, "{asked}: the host name can't be resolved: {why}"),
            Failure::Unconnected => write!(f, "{asked}: the connection was refused"),
            Failure::TimedOut => write!(f, "{asked}: no response in time"),
            Failure::Broken(text) => write!(f, "{asked}: the connection broke: {text}"),
            Failure::OutOfOrder { code } => write!(f, "{asked}: the registry failed with {code}"),
            Failure::Untrusted(check) => write!(f, "{asked}: the TLS connection is not trusted: {check}"),
            Failure::Busy { code, after: Some(after) } => {
                write!(f, "{asked}: the registry is busy ({code}) and asks to wait for {} seconds", after.as_secs())
            }
            Failure::Busy { code, after: None } => write!(f, "{asked}: the registry is busy ({code})"),
            Failure::Denied { code, why, shown } => {
                let shown = match shown {
                    Shown::Nothing => "requires authentication, and no pull secret is for it",
                    Shown::NothingByPlugin => {
                        "requires authentication, and no pull secret holds a password because a credential plugin does"
                    }
                    Shown::Password => "rejected the credentials in the pull secrets",
                };
                write!(f, "{asked}: the registry {shown}: {code}{}", because(*why))
            }
            Failure::Status { code, why } => write!(f, "{asked}: the registry answered {code}{}", because(*why)),
            Failure::Missing => write!(f, "{asked}: not found"),
            Failure::Led(refusal) => write!(f, "{asked}: Windlass does not follow the registry there: {refusal}"),
            Failure::Name(why) => write!(f, "{why}"),
            Failure::Wrong(mismatch) => write!(f, "{asked}: {mismatch}"),
            Failure::TooShort { size, came } => write!(f, "{asked}: the content ends after {came} of {size} bytes"),
            Failure::TooLong { size } => write!(f, "{asked}: the content is longer than its {size} bytes"),
            Failure::Unreadable(why) => write!(f, "{asked}: {why}"),
            Failure::Garbled(why) => write!(f, "{asked}: the response is not valid: {why}"),
        }
    }
}

impl std::error::Error for RegistryError {}

/// The specification's words in the body of a refusal. Only these are repeated: whatever else stands there is somebody else's text.
pub(super) fn told(body: &[u8]) -> Option<&'static str> {
    #[derive(serde::Deserialize)]
    struct Body {
        errors: Vec<Entry>,
    }
    #[derive(serde::Deserialize)]
    struct Entry {
        code: String,
    }
    const WORDS: [&str; 16] = [
        "BLOB_UNKNOWN",
        "BLOB_UPLOAD_INVALID",
        "BLOB_UPLOAD_UNKNOWN",
        "DENIED",
        "DIGEST_INVALID",
        "MANIFEST_BLOB_UNKNOWN",
        "MANIFEST_INVALID",
        "MANIFEST_UNKNOWN",
        "NAME_INVALID",
        "NAME_UNKNOWN",
        "SIZE_INVALID",
        "TAG_INVALID",
        "TOOMANYREQUESTS",
        "UNAUTHORIZED",
        "UNAVAILABLE",
        "UNSUPPORTED",
    ];
    let body: Body = serde_json::from_slice(body).ok()?;
    WORDS.into_iter().find(|word| body.errors.first().is_some_and(|entry| entry.code == *word))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"secret"}]}"#, Some("MANIFEST_UNKNOWN"))]
    #[case(br#"{"errors":[{"code":"s3cret"}]}"#, None)]
    #[case(br#"{"errors":[]}"#, None)]
    #[case(b"<html>", None)]
    fn only_known_words_are_repeated(#[case] body: &[u8], #[case] expected: Option<&str>) {
        assert_eq!(told(body), expected);
    }

    #[rstest]
    #[case(io::ErrorKind::ConnectionRefused.into(), Failure::Unconnected, Class::Silent)]
    #[case(io::ErrorKind::TimedOut.into(), Failure::TimedOut, Class::Silent)]
    #[case(io::Error::other("reset"), Failure::Broken("reset".into()), Class::Silent)]
    #[case(Fault::Untrusted("wrong name".into()).into(), Failure::Untrusted("wrong name".into()), Class::Untrusted)]
    fn errors_on_the_way_are_told_apart(#[case] error: io::Error, #[case] failure: Failure, #[case] class: Class) {
        let asked = Asked { registry: "quay.io".into(), what: "the manifest v1 of a".into(), at: None };
        let found = asked.failed(&error);
        assert_eq!((found.failure(), found.class()), (&failure, class));
        assert!(found.to_string().starts_with("the manifest v1 of a at quay.io: "));
    }
}
