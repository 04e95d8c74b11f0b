//! The path of a file inside an image, as a person names it.

use std::{fmt, str::FromStr};

/// The longest path, and the longest name in one, that Linux knows.
pub(super) const PATH_LIMIT: usize = 4096;
pub(super) const NAME_LIMIT: usize = 255;

/// What deletes, in an image: a name with this in front.
pub(super) const WHITEOUT: &[u8] = b".wh.";

/// An absolute path that names a file in one way only: no `.`, no `..`, no slash too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath(String);

/// A text that is no such path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// It begins somewhere else than at the top.
    #[error("is not absolute: begin it with a slash")]
    Relative,
    /// A part that is empty, `.` or `..`.
    #[error("has a part that is empty, . or ..: name the file directly")]
    Part,
    /// A part that means something else in an image.
    #[error("has a part that begins with .wh., which marks what is deleted in an image")]
    Whiteout,
    /// The file's own name begins with a dot; what is not finished has such names.
    #[error("names a hidden file")]
    Hidden,
    /// A NUL or another control character.
    #[error("has a character that no path should have")]
    Character,
    /// Longer than Linux allows.
    #[error("is longer than a path, or has a part that is longer than a name")]
    TooLong,
}

impl FilePath {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part: what the file is called in the folder that it goes to.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split('/').skip(1).map(str::as_bytes)
    }
}

impl FromStr for FilePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let inside = text.strip_prefix('/').ok_or(InvalidPath::Relative)?;
        if text.chars().any(char::is_control) {
            return Err(InvalidPath::Character);
        }
        if text.len() > PATH_LIMIT || inside.split('/').any(|part| part.len() > NAME_LIMIT) {
            return Err(InvalidPath::TooLong);
        }
        if inside.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(InvalidPath::Part);
        }
        if inside.split('/').any(|part| part.as_bytes().starts_with(WHITEOUT)) {
            return Err(InvalidPath::Whiteout);
        }
        let path = Self(text.to_owned());
        if path.file_name().starts_with('.') { Err(InvalidPath::Hidden) } else { Ok(path) }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing("", InvalidPath::Relative)]
    #[case::relative("usr/bin/minio", InvalidPath::Relative)]
    #[case::the_top("/", InvalidPath::Part)]
    #[case::a_folder("/usr/bin/", InvalidPath::Part)]
    #[case::two_slashes("/usr//minio", InvalidPath::Part)]
    #[case::dot("/usr/./minio", InvalidPath::Part)]
    #[case::upwards("/usr/../minio", InvalidPath::Part)]
    #[case::deleted("/usr/.wh.bin/minio", InvalidPath::Whiteout)]
    #[case::hidden("/usr/bin/.minio", InvalidPath::Hidden)]
    #[case::nul("/usr/min\0io", InvalidPath::Character)]
    #[case::two_lines("/usr/min\nio", InvalidPath::Character)]
    fn what_names_no_file_is_refused(#[case] text: &str, #[case] expected: InvalidPath) {
        assert_eq!(text.parse::<FilePath>(), Err(expected));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let name = "a".repeat(NAME_LIMIT);
        assert_eq!(format!("/{name}").parse::<FilePath>().map(|path| path.file_name().len()), Ok(NAME_LIMIT));
        assert_eq!(format!("/{name}a").parse::<FilePath>(), Err(InvalidPath::TooLong));
        assert_eq!("/a".repeat(PATH_LIMIT).parse::<FilePath>(), Err(InvalidPath::TooLong));
    }

    #[test]
    fn a_path_has_parts_and_a_name() {
        let path: FilePath = "/usr/bin/minio".parse().unwrap();
        assert_eq!(path.parts().collect::<Vec<_>>(), [&b"usr"[..], b"bin", b"minio"]);
        assert_eq!(path.file_name(), "minio");
    }
}
