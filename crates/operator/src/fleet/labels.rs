//! Label selectors as kubectl's `-l` writes them, read here because they must be held against resources that somebody else selected.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::{Expression, Selector, SelectorExt};

/// What a selector asks for; none where it can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels(Option<Selector>);

impl Labels {
    /// Reads a selector.
    pub fn read(text: &str) -> Self {
        let all: Option<Vec<Expression>> = requirements(text).into_iter().map(requirement).collect();
        Self(all.map(|all| all.into_iter().collect()))
    }

    /// Whether a resource with these labels may be selected: what can't be read may select everything.
    pub fn may_select(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.as_ref().is_none_or(|selector| selector.matches(labels))
    }
}

/// What stands between commas, those within parentheses aside.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let split = text.split(move |one: char| {
        match one {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        one == ',' && depth == 0
    });
    split.map(str::trim).filter(|one| !one.is_empty()).collect()
}

fn requirement(text: &str) -> Option<Expression> {
    if let Some((key, set)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let values: BTreeSet<String> = set.split(',').map(str::trim).map(str::to_owned).collect();
        let (key, word) = key.trim_end().rsplit_once(char::is_whitespace)?;
        return match word {
            "in" => Some(Expression::In(key_of(key)?, values)),
            "notin" => Some(Expression::NotIn(key_of(key)?, values)),
            _ => None,
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Some(Expression::NotEqual(key_of(key)?, value.trim().to_owned()));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Expression::Equal(key_of(key)?, value.trim().to_owned()));
    }
    match text.strip_prefix('!') {
        Some(key) => Some(Expression::DoesNotExist(key_of(key)?)),
        None => Some(Expression::Exists(key_of(text)?)),
    }
}

/// A key, and nothing else: numbers that are compared, for one, are not read.
fn key_of(text: &str) -> Option<String> {
    let is_part = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.' | '/');
    let key = text.trim();
    (!key.is_empty() && key.chars().all(is_part)).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Labels;

    #[rstest]
    #[case::equal("zone=a", true)]
    #[case::spaced(" zone == a , tier ", true)]
    #[case::another("zone=b", false)]
    #[case::unequal("zone!=b", true)]
    #[case::unequal_to_what_is_not_there("rack!=b", true)]
    #[case::one_of("zone in (b, a),tier", true)]
    #[case::none_of("zone notin (a,b)", false)]
    #[case::none_of_what_is_not_there("rack notin (a)", true)]
    #[case::there("example.org/app", true)]
    #[case::not_there("!rack", true)]
    #[case::there_although("!zone", false)]
    #[case::an_empty_value("tier=", true)]
    #[case::one_of_two_fails("zone=a,tier=x", false)]
    #[case::everything("", true)]
    #[case::what_cannot_be_read_may_select_anything("zone>3,zone=b", true)]
    #[case::nor_this("zone within (b)", true)]
    fn selectors_are_read_as_kubectl_writes_them(#[case] selector: &str, #[case] expected: bool) {
        let labels = [("zone", "a"), ("tier", ""), ("example.org/app", "web")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(Labels::read(selector).may_select(&labels), expected, "{selector}");
    }
}
