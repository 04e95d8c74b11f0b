//! The key of an object in its table.

use std::ops::Bound;

/// Namespace and name, in the order in which lists give them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(String);

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self(if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") })
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.split_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }

    /// All keys of one namespace; of all where the namespace is empty.
    pub(crate) fn range(namespace: &str) -> (Bound<Self>, Bound<Self>) {
        if namespace.is_empty() {
            (Bound::Unbounded, Bound::Unbounded)
        } else {
            // '0' follows '/' directly.
            (Bound::Included(Self(format!("{namespace}/"))), Bound::Excluded(Self(format!("{namespace}0"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_namespace_that_begins_like_another_is_not_listed_with_it() {
        let keys = [Key::new("a", "x"), Key::new("a-b", "x"), Key::new("a0", "x"), Key::new("ab", "x")];
        let keys: BTreeSet<Key> = keys.into_iter().collect();
        let listed: Vec<&str> = keys.range(Key::range("a")).map(Key::text).collect();
        assert_eq!(listed, ["a/x"]);
    }
}
