//! What a registry wants to be shown, and the tokens that were fetched to show it.
//!
//! A registry answers 401 with challenges; one of them names a realm where a token can be had. What the token is for is ours to say: to read
//! one repository, whatever the challenge asks. Nothing here sends anything.

use std::{collections::BTreeMap, time::Duration};

use http::HeaderValue;
use serde::Deserialize;
use tokio::time::Instant;
use windlass_systems::{Secret, escape};

use crate::registry::route::Origin;

/// The longest header that is read. Challenges have some hundred bytes.
const HEADER_LIMIT: usize = 8 * 1024;
/// How many challenges one answer may hold.
const CHALLENGES: usize = 8;
/// The longest answer of a realm. Tokens have some kilobytes, and must fit into a header.
pub const TOKEN_LIMIT: usize = 64 * 1024;
/// How long a token is good for where nobody says: as long as the specification of tokens says.
const LIFETIME: Duration = Duration::from_mins(1);
/// How long a token is kept at most, whatever a realm says.
const LONGEST: Duration = Duration::from_hours(1);
/// A token this close to its end is not used: it would end on the way.
const MARGIN: Duration = Duration::from_secs(10);
/// How many tokens are kept.
const KEPT: usize = 1024;

/// One thing that a registry would accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A name and a password.
    Basic,
    /// A token of this realm.
    Bearer {
        /// Where tokens are had.
        realm: String,
        /// The registry that they are for, as the realm knows it.
        service: Option<String>,
    },
    /// Something else, which is passed by.
    Other,
}

/// A header that holds no challenges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the challenge in WWW-Authenticate can't be read")]
pub struct InvalidChallenge;

/// Reads the challenges of one `WWW-Authenticate`: several may stand in it, and commas separate both them and their parameters.
pub fn challenges(header: &[u8]) -> Result<Vec<Challenge>, InvalidChallenge> {
    let text = std::str::from_utf8(header).map_err(|_| InvalidChallenge)?;
    if text.len() > HEADER_LIMIT {
        return Err(InvalidChallenge);
    }
    let mut found: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    for item in items(text)? {
        let (word, rest) = word(item)?;
        let parameter = if let Some(value) = value(rest) {
            Some((word, value?))
        } else {
            found.push((word.to_ascii_lowercase(), BTreeMap::new()));
            first_parameter(rest.trim())?
        };
        if let Some((name, value)) = parameter {
            let (_, parameters) = found.last_mut().ok_or(InvalidChallenge)?;
            // Of two values nobody knows which one counts.
            if parameters.insert(name.to_ascii_lowercase(), value).is_some() {
                return Err(InvalidChallenge);
            }
        }
    }
    if found.len() > CHALLENGES {
        return Err(InvalidChallenge);
    }
    Ok(found.into_iter().map(|(scheme, parameters)| challenge(&scheme, parameters)).collect())
}

fn challenge(scheme: &str, mut parameters: BTreeMap<String, String>) -> Challenge {
    match (scheme, parameters.remove("realm")) {
        ("basic", _) => Challenge::Basic,
        ("bearer", Some(realm)) => Challenge::Bearer { realm, service: parameters.remove("service") },
        (_, _) => Challenge::Other,
    }
}

/// The parts between commas that are not inside quotes.
fn items(text: &str) -> Result<Vec<&str>, InvalidChallenge> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(|c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => return true,
            _ => {}
        }
        false
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
    if is_quoted { Err(InvalidChallenge) } else { Ok(parts) }
}

/// The word that a part begins with, and what comes after it.
fn word(text: &str) -> Result<(&str, &str), InvalidChallenge> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    if end == 0 { Err(InvalidChallenge) } else { Ok(text.split_at(end)) }
}

/// The value after an equals sign, where there is one.
fn value(text: &str) -> Option<Result<String, InvalidChallenge>> {
    let text = text.trim_start().strip_prefix('=')?.trim();
    let Some(quoted) = text.strip_prefix('"') else {
        return Some(match word(text) {
            Ok((value, "")) => Ok(value.to_owned()),
            Ok(_) | Err(_) => Err(InvalidChallenge),
        });
    };
    Some(unquoted(quoted))
}

fn unquoted(text: &str) -> Result<String, InvalidChallenge> {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return if characters.as_str().is_empty() { Ok(value) } else { Err(InvalidChallenge) },
            '\\' => value.push(characters.next().ok_or(InvalidChallenge)?),
            c if c.is_control() => return Err(InvalidChallenge),
            other => value.push(other),
        }
    }
    Err(InvalidChallenge)
}

/// What comes after a scheme: a parameter, one blob of letters that is not looked at, or nothing.
fn first_parameter(text: &str) -> Result<Option<(&str, String)>, InvalidChallenge> {
    let is_blob = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
    if text.trim_end_matches('=').chars().all(is_blob) {
        return Ok(None);
    }
    let (name, rest) = word(text)?;
    Ok(Some((name, value(rest).ok_or(InvalidChallenge)??)))
}

/// What a token is asked to be good for: to read this repository, and nothing that a challenge asks for beyond that.
fn scope(repository: &str) -> String {
    format!("repository:{repository}:pull")
}

/// The query that asks a realm for a token. `path` is the realm's own, which may have a query already.
pub fn token_path(path: &str, service: Option<&str>, repository: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    let service = service.map(|service| format!("service={}&", escape::segment(service))).unwrap_or_default();
    format!("{path}{joint}{service}scope={}", escape::segment(&scope(repository)))
}

/// The form that exchanges an identity token for a token.
pub(super) fn token_form(identity: &Secret, service: Option<&str>, repository: &str) -> String {
    format!(
        "grant_type=refresh_token&client_id=windlass&service={}&scope={}&refresh_token={}",
        escape::segment(service.unwrap_or_default()),
        escape::segment(&scope(repository)),
        escape::segment(identity.reveal())
    )
}

/// A token, and how long it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The token.
    pub token: Secret,
    /// How long it is good for.
    pub lifetime: Duration,
}

/// An answer of a realm without a token in it. Does not repeat the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer holds no token")]
pub struct NoToken;

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Reads what a realm answered.
pub fn granted(bytes: &[u8]) -> Result<Granted, NoToken> {
    if bytes.len() > TOKEN_LIMIT {
        return Err(NoToken);
    }
    let Answer { token, access_token, expires_in } = serde_json::from_slice(bytes).map_err(|_| NoToken)?;
    let text = token.filter(|token| !token.is_empty()).or(access_token).ok_or(NoToken)?;
    let lifetime = expires_in.map_or(LIFETIME, Duration::from_secs).min(LONGEST);
    Ok(Granted { token: Secret::new(&text).map_err(|_| NoToken)?, lifetime })
}

/// What was accepted before, by registry and repository. It has no `Debug`.
#[derive(Default)]
pub(super) struct Tokens(BTreeMap<(Origin, String), (HeaderValue, Instant)>);

impl Tokens {
    /// What to show, where something is still good.
    pub fn get(&self, registry: &Origin, repository: &str, now: Instant) -> Option<HeaderValue> {
        let (header, end) = self.0.get(&(registry.clone(), repository.to_owned()))?;
        (now < *end).then(|| header.clone())
    }

    pub fn keep(&mut self, registry: &Origin, repository: &str, header: HeaderValue, lifetime: Duration, now: Instant) {
        self.0.retain(|_, (_, end)| now < *end);
        if self.0.len() < KEPT
            && let Some(end) = now.checked_add(lifetime.saturating_sub(MARGIN))
        {
            self.0.insert((registry.clone(), repository.to_owned()), (header, end));
        }
    }

    pub fn forget(&mut self, registry: &Origin, repository: &str) {
        self.0.remove(&(registry.clone(), repository.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>) -> Challenge {
        Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) }
    }

    #[rstest]
    #[case::nothing("", vec![])]
    #[case::basic(r#"Basic realm="Registry""#, vec![Challenge::Basic])]
    #[case::basic_alone("basic", vec![Challenge::Basic])]
    #[case::bearer(r#"Bearer realm="https://a.test/token",service="r",scope="repository:a/b:pull,push""#, vec![bearer("https://a.test/token", Some("r"))])]
    #[case::spaces(r#"  Bearer   realm = "https://a.test/t" ,  service=r  "#, vec![bearer("https://a.test/t", Some("r"))])]
    #[case::several(r#"Negotiate, Basic realm="x", charset="UTF-8", Bearer realm="https://a.test/t""#, vec![Challenge::Other, Challenge::Basic, bearer("https://a.test/t", None)])]
    #[case::a_blob("Negotiate YWJj==, Basic", vec![Challenge::Other, Challenge::Basic])]
    #[case::a_comma_in_quotes(r#"Bearer realm="https://a.test/t?a=b,c""#, vec![bearer("https://a.test/t?a=b,c", None)])]
    #[case::escapes(r#"Bearer realm="a\"b\\c""#, vec![bearer(r#"a"b\c"#, None)])]
    #[case::a_scheme_in_quotes(r#"Bearer realm="x, Basic""#, vec![bearer("x, Basic", None)])]
    #[case::no_realm(r#"Bearer service="r""#, vec![Challenge::Other])]
    #[case::empty_parts(",, Basic ,,", vec![Challenge::Basic])]
    fn challenges_are_read(#[case] header: &str, #[case] expected: Vec<Challenge>) {
        assert_eq!(challenges(header.as_bytes()), Ok(expected));
    }

    #[rstest]
    #[case::open_quotes(r#"Bearer realm="https://a.test"#)]
    #[case::two_realms(r#"Bearer realm="https://a.test",realm="https://evil.test""#)]
    #[case::two_realms_in_other_letters(r#"Bearer realm="https://a.test",Realm="https://evil.test""#)]
    #[case::something_after_quotes(r#"Bearer realm="a"b"#)]
    #[case::no_scheme(r#"realm="https://a.test""#)]
    #[case::no_word("=x")]
    #[case::lines("Bearer realm=\"a\r\nb\"")]
    #[case::two_words("Bearer realm=a b")]
    fn hostile_challenges_are_refused(#[case] header: &str) {
        assert_eq!(challenges(header.as_bytes()), Err(InvalidChallenge));
    }

    #[test]
    fn only_so_much_is_read() {
        let many = |count: usize| vec!["Basic"; count].join(",");
        assert_eq!(challenges(many(CHALLENGES).as_bytes()).map(|found| found.len()), Ok(CHALLENGES));
        assert_eq!(challenges(many(CHALLENGES + 1).as_bytes()), Err(InvalidChallenge));
        assert_eq!(challenges(&vec![b' '; HEADER_LIMIT + 1]), Err(InvalidChallenge));
        assert_eq!(granted(&vec![b' '; TOKEN_LIMIT + 1]), Err(NoToken));
    }

    #[test]
    fn a_token_is_asked_for_reading_alone() {
        assert_eq!(token_path("/t", Some("a&b"), "x/y"), "/t?service=a%26b&scope=repository%3Ax%2Fy%3Apull");
        assert_eq!(token_path("/t?a=b", None, "x"), "/t?a=b&scope=repository%3Ax%3Apull");
        let form = token_form(&Secret::new("a&scope=b").unwrap(), Some("r"), "x");
        assert!(form.ends_with("&service=r&scope=repository%3Ax%3Apull&refresh_token=a%26scope%3Db"), "{form}");
    }

    #[rstest]
    #[case(r#"{"token":"a","expires_in":300}"#, "a", 300)]
    #[case(r#"{"access_token":"b"}"#, "b", 60)]
    #[case(r#"{"token":"a","access_token":"b"}"#, "a", 60)]
    #[case(r#"{"token":"","access_token":"b"}"#, "b", 60)]
    #[case(r#"{"token":"a","expires_in":99999999999}"#, "a", 3600)]
    fn tokens_are_read(#[case] answer: &str, #[case] token: &str, #[case] seconds: u64) {
        let found = granted(answer.as_bytes()).unwrap();
        assert_eq!((found.token.reveal(), found.lifetime), (token, Duration::from_secs(seconds)));
    }

    #[rstest]
    #[case("{}")]
    #[case(r#"{"token":"two words"}"#)]
    #[case(r#"{"token":"a\nb"}"#)]
    #[case(r#"{"token":7}"#)]
    #[case("no JSON")]
    fn other_answers_hold_no_token(#[case] answer: &str) {
        assert_eq!(granted(answer.as_bytes()), Err(NoToken));
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_kept_for_its_repository_and_until_shortly_before_its_end() {
        let origin = |host: &str| Origin { tls: true, host: host.to_owned(), port: 443 };
        let (a, start) = (origin("a.test"), Instant::now());
        let mut tokens = Tokens::default();
        tokens.keep(&a, "x", HeaderValue::from_static("t"), Duration::from_mins(1), start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(tokens.get(&a, "x", at(49)).is_some());
        assert_eq!(tokens.get(&a, "x", at(50)), None);
        assert_eq!(tokens.get(&a, "y", start), None);
        assert_eq!(tokens.get(&origin("b.test"), "x", start), None);
        tokens.forget(&a, "x");
        assert_eq!(tokens.get(&a, "x", start), None);
    }

    proptest! {
        #[test]
        fn no_bytes_bring_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (challenges(&bytes), granted(&bytes));
        }

        /// Whatever a realm holds, it comes back as it was quoted, and nothing in it becomes a parameter or a challenge.
        #[test]
        fn what_is_quoted_stays_inside(realm in "[^\\p{C}]{0,40}") {
            let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Bearer realm=\"{quoted}\",service=r, Basic");
            prop_assert_eq!(challenges(header.as_bytes()), Ok(vec![bearer(&realm, Some("r")), Challenge::Basic]));
        }
    }
}
