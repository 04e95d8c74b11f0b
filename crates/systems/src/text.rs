//! A text that an expression (CEL) yields from values that were read; or it can't be told.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "which kinds of values there are depends on the library's features"
)]

use cel::Value;

use crate::expression::{self, Expression, Variables};

/// An expression for a text that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Text(Expression);

impl Text {
    /// Reads it. `names` are those that it may use. The error is for a person.
    pub fn read(text: &str, names: &[&str]) -> Result<Self, String> {
        Expression::read(text, names).map(Self)
    }

    /// What it comes to. What is no text is not told; the error says why and repeats nothing that it was given.
    pub fn of<'a>(&self, with: impl IntoIterator<Item = (&'a str, serde_json::Value)>) -> Result<String, String> {
        match self.0.evaluate(&Variables::of(with))? {
            Value::String(text) => Ok(text.to_string()),
            other => Err(format!("it must yield a text, and yields {}", expression::kind(&other))),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::Text;

    #[rstest]
    #[case::as_it_is("self.status.selector", Ok("app=a"))]
    #[case::put_together("'app=' + self.metadata.name + ',tier=' + string(self.spec.tier)", Ok("app=a,tier=3"))]
    #[case::what_is_missing("self.status.labels", Err("there is no labels"))]
    #[case::no_text("self.spec.tier", Err("it must yield a text, and yields a whole number"))]
    fn it_is_a_text_or_not_told(#[case] text: &str, #[case] expected: Result<&str, &str>) {
        let text = Text::read(text, &["self"]).expect("it can be read");
        let object = json!({"metadata": {"name": "a"}, "spec": {"tier": 3}, "status": {"selector": "app=a"}});
        assert_eq!(text.of([("self", object)]), expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn names_that_are_not_there_are_refused_when_it_is_read() {
        let error = Text::read("pod.name", &["self"]).expect_err("it is refused");
        assert_eq!(error, "pod is not known; there is self");
    }
}
