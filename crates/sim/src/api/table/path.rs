//! JSONPath as the columns of custom resources use it: fields, indexes, wildcards and filters on equality.

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// `[?(@.field==value)]`
    Where {
        path: Vec<Step>,
        equal: bool,
        value: Value,
    },
}

/// A path that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path(Vec<Step>);

impl Path {
    /// Reads a path like `.status.conditions[?(@.type=="Ready")].status`; none where it says more than is understood here.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        steps(text.trim().trim_start_matches('$')).map(Self)
    }

    /// The first value at this path.
    pub(crate) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        find(&self.0, object).into_iter().next()
    }
}

fn find<'a>(steps: &[Step], value: &'a Value) -> Vec<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return vec![value] };
    let next: Vec<&Value> = match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => {
            let list = value.as_array().map_or(&[][..], Vec::as_slice);
            let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let place = if *index < 0 { length + index } else { *index };
            usize::try_from(place).ok().and_then(|place| list.get(place)).into_iter().collect()
        }
        Step::All => match value {
            Value::Array(list) => list.iter().collect(),
            Value::Object(map) => map.values().collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        },
        Step::Where { path, equal, value: wanted } => {
            let list = value.as_array().map_or(&[][..], Vec::as_slice);
            let fits = |item: &&Value| {
                let found = find(path, item);
                found.first().is_some_and(|found| (*found == wanted) == *equal)
            };
            list.iter().filter(fits).collect()
        }
    };
    next.into_iter().flat_map(|value| find(rest, value)).collect()
}

fn steps(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = closing(inside)?;
            let (inside, after) = (inside.get(..end)?, inside.get(end + 1..)?);
            steps.push(bracket(inside.trim())?);
            rest = after;
        } else {
            let (field, after) = field(rest.strip_prefix('.')?)?;
            match field.as_str() {
                "" if after.is_empty() && steps.is_empty() => {}
                "" => return None,
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Field(field)),
            }
            rest = after;
        }
    }
    Some(steps)
}

/// A field's name, in which a backslash takes the meaning from the next character, and what follows it.
fn field(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => return Some((name, text.get(at..)?)),
            '\\' => name.push(characters.next()?.1),
            other => name.push(other),
        }
    }
    Some((name, ""))
}

/// Where the bracket closes, quotes and inner brackets aside.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (Some(_) | None, _) => {}
        }
    }
    None
}

fn bracket(inside: &str) -> Option<Step> {
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(name) = quoted(inside) {
        return Some(Step::Field(name));
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (equal, (left, right)) = match filter.split_once("==") {
            Some(sides) => (true, sides),
            None => (false, filter.split_once("!=")?),
        };
        let path = steps(left.trim().strip_prefix('@')?)?;
        let right = right.trim();
        let value = match quoted(right) {
            Some(text) => Value::String(text),
            None => serde_json::from_str(right).ok()?,
        };
        return Some(Step::Where { path, equal, value });
    }
    inside.parse().ok().map(Step::Index)
}

fn quoted(text: &str) -> Option<String> {
    let inner = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))?;
    Some(inner.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(".spec.version", json!("8.5"))]
    #[case("$.spec.version", json!("8.5"))]
    #[case(".status.conditions[?(@.type=='Ready')].status", json!("True"))]
    #[case(".status.conditions[?(@.type==\"Other\")].status", json!("False"))]
    #[case(".status.conditions[?(@.type!='Ready')].status", json!("False"))]
    #[case(".status.conditions[1].type", json!("Other"))]
    #[case(".status.conditions[-1].type", json!("Other"))]
    #[case(".status.conditions[*].type", json!("Ready"))]
    #[case(".metadata.labels.app\\.io/name", json!("x"))]
    #[case(".metadata.labels['app.io/name']", json!("x"))]
    fn a_path_finds_its_value(#[case] path: &str, #[case] value: Value) {
        let object = json!({
            "metadata": {"labels": {"app.io/name": "x"}},
            "spec": {"version": "8.5"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
        });
        assert_eq!(Path::parse(path).unwrap().first(&object), Some(&value));
        assert_eq!(Path::parse(path).unwrap().first(&json!({})), None);
    }

    #[rstest]
    #[case("spec")]
    #[case(".a[")]
    #[case(".a[x]")]
    #[case(".a[?(@.b>1)]")]
    #[case("..a")]
    fn what_is_not_understood_is_no_path(#[case] path: &str) {
        assert_eq!(Path::parse(path), None);
    }
}
