//! Passwords for registries, out of pull secrets: which of them a pull may use, as a kubelet picks them.
//!
//! Given are the secrets that a pod of the same namespace would name; this module never looks further. Passwords are sent by
//! [`super::exchange`] and shown by nobody.

use std::{collections::BTreeMap, fmt};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::HeaderValue;
use serde::Deserialize;
use windlass_systems::{Password, Secret};

use crate::Location;

/// The longest docker configuration that is read: a Secret holds no more.
const SECRET_LIMIT: usize = 1024 * 1024;
/// How many passwords a pull tries. Kubelets try all; nobody has more than a few that fit.
const CANDIDATES: usize = 4;
/// What people and tools call Docker's registry in configurations.
const DOCKER_INDEX: &str = "index.docker.io";

/// Encoders leave the padding out as they like.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What is shown to a registry, or to the realm that hands out its tokens.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A name and a password.
    Login {
        /// Whose.
        user: String,
        /// The password.
        password: Password,
    },
    /// An identity token: good for fetching other tokens and for nothing else.
    Identity(Secret),
}

impl Credential {
    /// For `Authorization`, where it is a login.
    pub(super) fn basic(&self) -> Option<HeaderValue> {
        match self {
            Self::Login { user, password } => Some(password.basic(user)),
            Self::Identity(_) => None,
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            // Names of robots are secrets to some.
            Self::Login { .. } => "Login(hidden)",
            Self::Identity(_) => "Identity(hidden)",
        })
    }
}

/// Why a pull secret can't be used. Never repeats what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    /// Not JSON, or not of this form.
    #[error("it is no docker configuration; create it with kubectl create secret docker-registry")]
    Form,
    /// More than a Secret holds.
    #[error("it is longer than {SECRET_LIMIT} bytes")]
    TooLong,
    /// The field `auth` of an entry is not base64 of a name, a colon and a password.
    #[error(
        "the field auth of an entry is not base64 of user:password; create it with kubectl create secret docker-registry"
    )]
    Auth,
}

/// The passwords of several pull secrets.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// By the registry and path that they are for, as they were written but for the scheme.
    entries: BTreeMap<String, Vec<Credential>>,
    /// Whether a configuration names a program that would have passwords.
    by_plugin: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    auths: Option<BTreeMap<String, Entry>>,
    cred_helpers: Option<BTreeMap<String, String>>,
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl Credentials {
    /// None: for registries that everybody may read.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds what the key `.dockerconfigjson` of a Secret holds.
    pub fn add_config(&mut self, bytes: &[u8]) -> Result<(), InvalidSecret> {
        let File { auths, cred_helpers, creds_store } = read(bytes)?;
        self.by_plugin |= cred_helpers.is_some_and(|helpers| !helpers.is_empty())
            || creds_store.is_some_and(|store| !store.is_empty());
        self.add(auths.unwrap_or_default())
    }

    /// Adds what the key `.dockercfg` of an old Secret holds: the entries alone.
    pub fn add_legacy(&mut self, bytes: &[u8]) -> Result<(), InvalidSecret> {
        self.add(read(bytes)?)
    }

    fn add(&mut self, entries: BTreeMap<String, Entry>) -> Result<(), InvalidSecret> {
        for (place, entry) in entries {
            if let Some(credential) = entry.credential()? {
                self.entries.entry(key(&place)).or_default().push(credential);
            }
        }
        Ok(())
    }

    /// What to try at this place, the closest match first.
    pub(super) fn candidates(&self, location: &Location) -> Vec<&Credential> {
        // Backwards by letters, as kubelets do: of two that match, the one with more of a path comes first, and a wildcard last.
        let matching = self.entries.iter().rev().filter(|(key, _)| matches(key, location));
        let found: Vec<_> = matching.flat_map(|(_, credentials)| credentials).take(CANDIDATES).collect();
        if found.is_empty() && location.registry() == "docker.io" {
            return self.entries.get(DOCKER_INDEX).into_iter().flatten().take(CANDIDATES).collect();
        }
        found
    }

    /// Whether a configuration says that a program has the passwords: nodes may run it, and Windlass can't.
    pub(super) fn is_by_plugin(&self) -> bool {
        self.by_plugin
    }
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, InvalidSecret> {
    if bytes.len() > SECRET_LIMIT {
        return Err(InvalidSecret::TooLong);
    }
    // The library's own words could repeat what it read.
    serde_json::from_slice(bytes).map_err(|_| InvalidSecret::Form)
}

impl Entry {
    /// None where it holds nothing, as a configuration does whose passwords a program has.
    fn credential(self) -> Result<Option<Credential>, InvalidSecret> {
        let Self { auth, username, password, identitytoken } = self;
        if let Some(token) = identitytoken.filter(|token| !token.is_empty()) {
            return Secret::new(&token).map(Credential::Identity).map(Some).map_err(|_| InvalidSecret::Form);
        }
        let (user, password) = match auth.filter(|auth| !auth.trim().is_empty()) {
            Some(auth) => decode(&auth)?,
            None => (username.unwrap_or_default(), password.unwrap_or_default()),
        };
        Ok(Password::new(&password).ok().map(|password| Credential::Login { user, password }))
    }
}

fn decode(auth: &str) -> Result<(String, String), InvalidSecret> {
    let packed: String = auth.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = LENIENT.decode(packed).map_err(|_| InvalidSecret::Auth)?;
    let text = String::from_utf8(bytes).map_err(|_| InvalidSecret::Auth)?;
    let (user, password) = text.split_once(':').ok_or(InvalidSecret::Auth)?;
    Ok((user.to_owned(), password.to_owned()))
}

/// What an entry is for: without the scheme, and without the `/v1/` and `/v2/` that old tools write.
fn key(place: &str) -> String {
    let bare = place.strip_prefix("https://").or_else(|| place.strip_prefix("http://")).unwrap_or(place);
    let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
    let path = match path.split_once('/') {
        Some(("v1" | "v2", rest)) => rest,
        Some(_) | None => path,
    };
    let host = host.to_ascii_lowercase();
    if path.is_empty() { host } else { format!("{host}/{path}") }
}

/// Whether an entry is for this place: the same port, label by label the same host, where `*` and `?` stand for any letters, and a path that
/// the repository begins with.
fn matches(key: &str, location: &Location) -> bool {
    let (place, path) = key.split_once('/').unwrap_or((key, ""));
    let (wanted_host, wanted_port) = split_port(place);
    let (host, port) = split_port(location.registry());
    let labels = |host: &str| host.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (patterns, labels) = (labels(wanted_host), labels(host));
    wanted_port == port
        && patterns.len() == labels.len()
        && patterns.iter().zip(&labels).all(|(pattern, label)| fits(pattern.as_bytes(), label.as_bytes()))
        && location.repository().starts_with(path)
}

fn split_port(place: &str) -> (&str, Option<&str>) {
    match place.rsplit_once(':') {
        // The colons inside brackets belong to the address.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        Some(_) | None => (place, None),
    }
}

/// Whether a text fits a pattern. One pass with one place to go back to, so that no pattern takes long.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                back = Some((at + 1, in_text));
                at += 1;
            }
            Some(letter) if *letter == b'?' || text.get(in_text) == Some(letter) => {
                at += 1;
                in_text += 1;
            }
            Some(_) | None => match back {
                Some((after, from)) => {
                    back = Some((after, from + 1));
                    (at, in_text) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_STANDARD;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::Reference;

    const CANARY: &str = "canary-f3a9";

    fn location(image: &str) -> Location {
        image.parse::<Reference>().unwrap().locate().unwrap()
    }

    /// The entries are their own passwords.
    fn of(places: &[&str]) -> Credentials {
        let mut credentials = Credentials::none();
        for place in places {
            let config = json!({"auths": {*place: {"username": "me", "password": place}}});
            credentials.add_config(config.to_string().as_bytes()).unwrap();
        }
        credentials
    }

    fn passwords(credentials: &Credentials, image: &str) -> Vec<String> {
        let reveal = |credential: &&Credential| match credential {
            Credential::Login { password, .. } => password.reveal().to_owned(),
            Credential::Identity(token) => token.reveal().to_owned(),
        };
        credentials.candidates(&location(image)).iter().map(reveal).collect()
    }

    #[rstest]
    #[case::the_host(&["quay.io"], "quay.io/a/b", &["quay.io"])]
    #[case::another_host(&["quay.io"], "ghcr.io/a/b", &[])]
    #[case::a_host_that_begins_alike(&["quay.io"], "quay.io.evil.test/a", &[])]
    #[case::the_longest_path_first(&["quay.io", "quay.io/a/b", "quay.io/a"], "quay.io/a/b", &["quay.io/a/b", "quay.io/a", "quay.io"])]
    #[case::a_path_may_end_within_a_word(&["quay.io/te"], "quay.io/team/b", &["quay.io/te"])]
    #[case::another_path(&["quay.io/c"], "quay.io/a/b", &[])]
    #[case::a_port(&["quay.io:5000"], "quay.io:5000/a", &["quay.io:5000"])]
    #[case::another_port(&["quay.io"], "quay.io:5000/a", &[])]
    #[case::no_port(&["quay.io:443"], "quay.io/a", &[])]
    #[case::a_wildcard(&["*.example.com"], "eu.example.com/a", &["*.example.com"])]
    #[case::a_wildcard_is_one_label(&["*.example.com"], "a.eu.example.com/a", &[])]
    #[case::a_wildcard_is_not_none(&["*.example.com"], "example.com/a", &[])]
    #[case::within_a_label(&["eu-?.*ple.com"], "eu-1.example.com/a", &["eu-?.*ple.com"])]
    #[case::wildcards_last(&["*.example.com", "eu.example.com"], "eu.example.com/a", &["eu.example.com", "*.example.com"])]
    #[case::a_scheme(&["https://quay.io"], "quay.io/a", &["https://quay.io"])]
    #[case::an_old_path(&["https://quay.io/v2/"], "quay.io/a", &["https://quay.io/v2/"])]
    #[case::capitals(&["Quay.IO"], "quay.io/a", &["Quay.IO"])]
    #[case::docker(&["https://index.docker.io/v1/"], "pd:v1", &["https://index.docker.io/v1/"])]
    #[case::docker_by_its_name(&["docker.io", "https://index.docker.io/v1/"], "tikv/pd", &["docker.io"])]
    #[case::docker_is_nobody_elses(&["https://index.docker.io/v1/"], "quay.io/pd", &[])]
    #[case::an_address(&["[fd00::1]:5000"], "[fd00::1]:5000/a", &["[fd00::1]:5000"])]
    fn passwords_are_picked_as_kubelets_do(#[case] places: &[&str], #[case] image: &str, #[case] expected: &[&str]) {
        assert_eq!(passwords(&of(places), image), expected);
    }

    #[rstest]
    #[case::encoded(json!({"auth": BASE64_STANDARD.encode("me:se:cret")}), &["se:cret"])]
    #[case::without_padding(json!({"auth": BASE64_STANDARD.encode("me:se:cret").trim_end_matches('=')}), &["se:cret"])]
    #[case::encoded_wins(json!({"auth": "bWU6YQ==", "username": "x", "password": "y"}), &["a"])]
    #[case::plain(json!({"username": "me", "password": "b"}), &["b"])]
    #[case::an_identity(json!({"auth": "bWU6", "identitytoken": "c"}), &["c"])]
    #[case::nothing(json!({}), &[])]
    #[case::no_password(json!({"auth": "bWU6"}), &[])]
    fn entries_are_read(#[case] entry: serde_json::Value, #[case] expected: &[&str]) {
        let mut credentials = Credentials::none();
        credentials.add_legacy(json!({"quay.io": entry}).to_string().as_bytes()).unwrap();
        assert_eq!(passwords(&credentials, "quay.io/a"), expected);
    }

    #[test]
    fn a_plugin_is_noticed() {
        for (config, expected) in [
            (json!({"credsStore": "ecr-login"}), true),
            (json!({"auths": {"a.test": {}}, "credHelpers": {"a.test": "gcloud"}}), true),
            (json!({"auths": {}, "credHelpers": {}, "credsStore": ""}), false),
        ] {
            let mut credentials = Credentials::none();
            credentials.add_config(config.to_string().as_bytes()).unwrap();
            assert_eq!(credentials.is_by_plugin(), expected, "{config}");
        }
    }

    #[rstest]
    #[case::no_json(CANARY.to_owned(), InvalidSecret::Form)]
    #[case::another_form(json!({"auths": {"a.test": {"password": [CANARY]}}}).to_string(), InvalidSecret::Form)]
    #[case::no_base64(json!({"auths": {"a.test": {"auth": CANARY}}}).to_string(), InvalidSecret::Auth)]
    #[case::no_colon(json!({"auths": {"a.test": {"auth": BASE64_STANDARD.encode(CANARY)}}}).to_string(), InvalidSecret::Auth)]
    #[case::too_long(" ".repeat(SECRET_LIMIT + 1), InvalidSecret::TooLong)]
    fn what_is_wrong_is_not_repeated(#[case] text: String, #[case] expected: InvalidSecret) {
        let error = Credentials::none().add_config(text.as_bytes()).unwrap_err();
        assert_eq!(error, expected);
        assert!(!format!("{error} {error:?}").contains(CANARY));
    }

    #[test]
    fn passwords_are_not_shown() {
        let mut credentials = Credentials::none();
        let config =
            json!({"auths": {"a.test": {"username": CANARY, "password": CANARY}, "b.test": {"identitytoken": CANARY}}});
        credentials.add_config(config.to_string().as_bytes()).unwrap();
        let shown = format!("{credentials:?} {credentials:#?}");
        assert!(shown.contains("a.test") && !shown.contains(CANARY), "{shown}");
    }

    proptest! {
        #[test]
        fn no_bytes_bring_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Credentials::none().add_config(&bytes), Credentials::none().add_legacy(&bytes));
        }

        /// No pattern makes a password go to a registry whose last labels are others.
        #[test]
        fn a_wildcard_never_reaches_another_domain(pattern in "[a-z*?]{1,8}") {
            let credentials = of(&[&format!("{pattern}.example.com")]);
            prop_assert!(passwords(&credentials, "eu.example.com.evil.test/a").is_empty());
            prop_assert!(passwords(&credentials, "eu.evil.com/a").is_empty());
        }

        #[test]
        fn every_login_comes_back_as_it_was_written(user in "[^:\\p{C}]{0,12}", password in "[^\\p{C}]{1,12}") {
            let config = json!({"a.test": {"auth": BASE64_STANDARD.encode(format!("{user}:{password}"))}});
            let mut credentials = Credentials::none();
            credentials.add_legacy(config.to_string().as_bytes()).unwrap();
            prop_assert_eq!(passwords(&credentials, "a.test/x"), vec![password]);
        }
    }
}
