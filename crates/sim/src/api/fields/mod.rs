//! Paths of fields: sets of them, which of them a value has, in which of them two values differ, and values put together
//! or taken apart by them.

mod compare;
mod element;
mod merge;
mod of_value;
mod remove;
mod set;
mod validate;

pub(crate) use self::compare::{Comparison, Zeros, compare};
pub(crate) use self::merge::merge;
pub(crate) use self::of_value::fields_of;
pub(crate) use self::remove::remove;
pub(crate) use self::set::FieldSet;
pub(crate) use self::validate::{plain, validate};

/// What keeps a value from being looked at by its type: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    path: String,
    why: String,
}

impl Problem {
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    fn below(mut self, element: &str) -> Self {
        self.path.insert_str(0, element);
        self
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() { f.write_str(&self.why) } else { write!(f, "{}: {}", self.path, self.why) }
    }
}

/// All of them as one text.
pub(crate) fn describe(problems: &[Problem]) -> String {
    match problems {
        [only] => only.to_string(),
        many => many.iter().fold("errors:".to_owned(), |text, problem| format!("{text}\n  {problem}")),
    }
}
