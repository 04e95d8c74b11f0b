//! Tokens: sent, never shown.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::HeaderValue;

/// What comes before a token in `Authorization`.
pub(crate) const BEARER: &str = "Bearer ";

/// A token, or the credential that is exchanged for one. Neither `Debug` nor `Display` shows it, and [`crate::call`] takes it out of
/// every message.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(HeaderValue);

/// What was given can't be a token. Does not repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is empty or holds characters that no token has; check what the secret holds")]
pub struct NoSecret;

impl Secret {
    /// Takes a token as it is found in a file or in a Secret, where a line often ends after it.
    pub fn new(text: &str) -> Result<Self, NoSecret> {
        let text = text.trim_ascii();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NoSecret);
        }
        let mut value = HeaderValue::from_str(text).map_err(|_| NoSecret)?;
        // The mark by which it is known in a request, and what keeps it out of the request's `Debug`.
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// To be sent as a header.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// To be sent as `Authorization`.
    pub fn bearer(&self) -> HeaderValue {
        // What made a header by itself makes one behind a word.
        let mut value = HeaderValue::try_from(format!("{BEARER}{}", self.reveal())).unwrap_or_else(|_| self.header());
        value.set_sensitive(true);
        value
    }

    /// To be sent in a body, or to be looked for in a message; for nothing else.
    pub fn reveal(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// A password: sent in a login, never shown. It may hold anything that people type.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes a password as it is found in a file or in a Secret, where a line often ends after it.
    pub fn new(text: &str) -> Result<Self, NoSecret> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() { Err(NoSecret) } else { Ok(Self(text.to_owned())) }
    }

    /// To be sent in a body, or to be looked for in a message; for nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Password {
    /// To be sent as `Authorization`, together with whose it is.
    pub fn basic(&self, user: &str) -> HeaderValue {
        let encoded = BASE64_STANDARD.encode(format!("{user}:{}", self.0));
        // These letters make a header behind a word.
        let mut value =
            HeaderValue::try_from(format!("Basic {encoded}")).unwrap_or_else(|_| HeaderValue::from_static("Basic"));
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_secret_is_sent_and_never_shown() {
        let secret = Secret::new("hvs.CAESIJ\n").unwrap();
        assert_eq!((secret.reveal(), secret.header().as_bytes()), ("hvs.CAESIJ", &b"hvs.CAESIJ"[..]));
        for shown in
            [format!("{secret:?}"), format!("{secret:#?}"), secret.to_string(), format!("{:?}", secret.header())]
        {
            assert!(!shown.contains("CAESIJ"), "{shown}");
        }
    }

    #[rstest]
    #[case::as_typed("correct horse, Schlüssel", "correct horse, Schlüssel")]
    #[case::from_a_file("hunter2\n", "hunter2")]
    #[case::from_a_file_with_two_ends("hunter2\r\n", "hunter2")]
    #[case::with_spaces_at_its_end("hunter2 ", "hunter2 ")]
    fn a_password_is_sent_as_it_is_and_never_shown(#[case] text: &str, #[case] sent: &str) {
        let password = Password::new(text).unwrap();
        assert_eq!(password.reveal(), sent);
        assert_eq!(format!("{password:?}"), "Password(hidden)");
    }

    #[test]
    fn a_login_in_a_header_is_not_shown() {
        let header = Password::new("open sesame").unwrap().basic("Aladdin");
        assert_eq!(header.to_str().unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(header.is_sensitive() && !format!("{header:?}").contains("QWxhZGRpbj"));
    }

    #[test]
    fn no_password_is_none() {
        assert_eq!((Password::new(""), Password::new("\n")), (Err(NoSecret), Err(NoSecret)));
    }

    #[rstest]
    #[case::nothing("")]
    #[case::blank(" \n")]
    #[case::two_words("Bearer hvs.x")]
    #[case::two_lines("hvs.x\nhvs.y")]
    #[case::letters_that_no_token_has("schlüssel")]
    fn what_is_no_token_is_refused_and_not_repeated(#[case] text: &str) {
        assert_eq!(Secret::new(text), Err(NoSecret));
        assert!(text.trim().is_empty() || !NoSecret.to_string().contains(text));
    }
}
