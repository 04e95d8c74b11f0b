//! A condition in CEL on values that were read: true, false, or it can't be told.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "which kinds of values there are depends on the library's features"
)]

use cel::Value;

use crate::expression::{self, Expression, Variables};

/// A condition that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Expression);

impl Condition {
    /// Reads it. `names` are those that it may use. The error is for a person.
    pub fn read(text: &str, names: &[&str]) -> Result<Self, String> {
        Expression::read(text, names).map(Self)
    }

    /// Whether it is so. What is neither true nor false is not told; the error says why and repeats nothing that it was given.
    pub fn holds<'a>(&self, with: impl IntoIterator<Item = (&'a str, serde_json::Value)>) -> Result<bool, String> {
        match self.0.evaluate(&Variables::of(with))? {
            Value::Bool(holds) => Ok(holds),
            other => Err(format!("it must yield true or false, and yields {}", expression::kind(&other))),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::Condition;

    #[rstest]
    #[case::a_number_and_a_whole_one("value < 1", Ok(true))]
    #[case::a_number("value < 0.25", Ok(false))]
    #[case::a_walk("objects.all(one, one.ready == true)", Ok(true))]
    #[case::nothing_there("objects.exists(one, one.name == 'other')", Ok(false))]
    #[case::what_is_missing_is_not_false("objects.all(one, one.healthy == true)", Err("there is no healthy"))]
    #[case::not_a_condition("objects.size()", Err("it must yield true or false, and yields a whole number"))]
    fn it_is_true_or_false_or_not_told(#[case] text: &str, #[case] expected: Result<bool, &str>) {
        let condition = Condition::read(text, &["value", "objects"]).expect("it can be read");
        let said = condition.holds([("value", json!(0.5)), ("objects", json!([{"name": "a", "ready": true}]))]);
        assert_eq!(said, expected.map_err(str::to_owned));
    }

    #[test]
    fn names_that_are_not_there_are_refused_when_it_is_read() {
        let error = Condition::read("body == 1", &["objects"]).expect_err("it is refused");
        assert_eq!(error, "body is not known; there is objects");
    }
}
