//! Expressions (CEL) on what was answered or read: what they may say, and what they come to.
//!
//! The library that reads and evaluates them knows no limit of cost, gives `false` for a field of something that has no fields, walks maps
//! in no order, and ends the process at what it does not support. So what it has read is checked and rewritten before it is kept:
//!
//! - Only the names and functions that are listed here can be used. None of them knows a time, a file or a network.
//! - `a.b` becomes `a["b"]`, which is an error where there is no `b`. The other way, `a.x == a.y` is true of a web page.
//! - A walk (`all`, `exists`, `exists_one`, `filter`, `map`) goes over a list of bounded size, or over a map's keys in their order. It uses
//!   nothing but its own variable, `pod` and `status`, and neither adds, nor makes lists, nor walks again: what it costs and makes grows
//!   no faster than what it walks over.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "which kinds of values there are depends on the library's features"
)]

use std::{collections::HashMap, sync::Arc, thread};

use cel::{
    Context, ExecutionError, FunctionContext, Value,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, MapEntryExpr,
        MapExpr, operators,
    },
    extractors::This,
    functions,
    objects::{Key, Map},
    parser::Parser,
};
use serde_json::Number;

/// The longest expression.
pub const LONGEST: usize = 1024;
/// How deep one may be nested; evaluating it takes as much of the stack.
const DEEPEST: usize = 32;
/// How many walks there may be in one.
const MOST_WALKS: usize = 4;
/// What may be walked over: values, and eight bytes of text for another one. The library copies what it has for every step.
const HEAVIEST: usize = 4096;
/// How many there may be where a walk makes a list: the library copies what it has made for every step, so the cost grows with the square.
const MOST_COLLECTED: usize = 256;
/// The parser takes much of the stack for each level of nesting, and checks its own limit late.
const STACK: usize = 32 << 20;

/// What stands between values. Not the minus before one: the library panics at that of the lowest number.
const OPERATORS: &[&str] = &[
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::INDEX,
    operators::IN,
];
/// What can be called.
const FUNCTIONS: &[&str] = &["contains", "endsWith", "int", "size", "startsWith", "string"];
/// What a walk may use besides its own variable: both are short.
const IN_WALKS: &[&str] = &["pod", "status"];
/// What collects the result of a walk; nobody can write it.
const RESULT: &str = "@result";
/// Stand in for what the library does in another way. Nobody can write these either.
const HAS: &str = "@has";
const WALKED: &str = "@walked";
const COLLECTED: &str = "@collected";

/// An expression that was read, checked and rewritten.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expression(IdedExpr);

impl Expression {
    /// Reads it. `names` are those that it may use.
    pub fn read(text: &str, names: &[&str]) -> Result<Self, String> {
        if text.chars().count() > LONGEST {
            return Err(format!("it is longer than {LONGEST} characters"));
        }
        // On a thread of its own, for its stack; a parser that panics has not read it.
        thread::scope(|scope| {
            let read = || Checked { names, walks: 0 }.checked(parsed(text)?, 0, None).map(Self);
            let reader = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
            let reader = reader.map_err(|error| format!("it can't be read: {error}"))?;
            reader.join().unwrap_or_else(|_| Err("it can't be read".to_owned()))
        })
    }

    /// Whether it uses a name.
    pub fn mentions(&self, name: &str) -> bool {
        self.0.references().has_variable(name)
    }

    /// What it comes to. The error does not repeat what it was given.
    pub fn evaluate(&self, variables: &Variables) -> Result<Value, String> {
        Value::resolve(&self.0, &variables.0).map_err(|error| problem(&error))
    }
}

fn parsed(text: &str) -> Result<IdedExpr, String> {
    Parser::new().parse(text).map_err(|errors| match errors.errors.first() {
        Some(error) => format!("{} at character {} of line {}", error.msg, error.pos.1, error.pos.0),
        None => "it can't be read".to_owned(),
    })
}

fn problem(error: &ExecutionError) -> String {
    if let ExecutionError::NoSuchKey(name) = error {
        return format!("there is no {name}");
    }
    if let ExecutionError::UndeclaredReference(name) = error {
        // All names were known when it was read.
        return match name.as_str() {
            "body" => "the answer is no JSON".to_owned(),
            "text" => "the answer is no text".to_owned(),
            name => format!("there is no {name}"),
        };
    }
    if let ExecutionError::FunctionError { function, .. } = error {
        return match function.as_str() {
            HAS => "has() was asked of something that has no fields".to_owned(),
            WALKED => "what shall be walked over is neither a list nor a map, or too long".to_owned(),
            COLLECTED => {
                format!(
                    "what shall be filtered or mapped is neither a list nor a map, or has more than {MOST_COLLECTED} entries"
                )
            }
            function => format!("{function}() can't take what it was given"),
        };
    }
    if matches!(error, ExecutionError::IndexOutOfBounds(_)) {
        return "a list is shorter than that".to_owned();
    }
    "a value is of a kind that does not fit".to_owned()
}

/// Checks and rewrites.
struct Checked<'a> {
    names: &'a [&'a str],
    walks: usize,
}

impl Checked<'_> {
    /// `walk` is the variable of the walk that this is inside of.
    fn checked(&mut self, expression: IdedExpr, depth: usize, walk: Option<&str>) -> Result<IdedExpr, String> {
        if depth > DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} levels deep"));
        }
        let IdedExpr { id, expr } = expression;
        let expr = match expr {
            Expr::Literal(literal) => Expr::Literal(literal),
            Expr::Ident(name) => Expr::Ident(self.name(name, walk)?),
            Expr::Select(select) => {
                let operand = self.checked(*select.operand, depth + 1, walk)?;
                let field = IdedExpr { id, expr: Expr::Literal(LiteralValue::String(select.field.into())) };
                call(if select.test { HAS } else { operators::INDEX }, vec![operand, field])
            }
            Expr::Call(called) => Expr::Call(self.call(called, depth, walk)?),
            Expr::List(_) | Expr::Map(_) if walk.is_some() => {
                return Err("a walk can't make lists or maps".to_owned());
            }
            Expr::List(list) => Expr::List(ListExpr::new(self.all(list.elements, depth, walk)?)),
            Expr::Map(map) => {
                let entries = map.entries.into_iter().map(|entry| self.entry(entry, depth));
                Expr::Map(MapExpr { entries: entries.collect::<Result<_, _>>()? })
            }
            Expr::Comprehension(walked) => self.walk(*walked, depth, walk)?,
            Expr::Struct(_) | Expr::Unspecified => return Err("it makes something that is not supported".to_owned()),
        };
        Ok(IdedExpr { id, expr })
    }

    fn all(&mut self, these: Vec<IdedExpr>, depth: usize, walk: Option<&str>) -> Result<Vec<IdedExpr>, String> {
        these.into_iter().map(|one| self.checked(one, depth + 1, walk)).collect()
    }

    fn in_walks(&self) -> impl Iterator<Item = &str> {
        self.names.iter().copied().filter(|name| IN_WALKS.contains(name))
    }

    fn name(&self, name: String, walk: Option<&str>) -> Result<String, String> {
        let known = match walk {
            None => self.names.contains(&name.as_str()),
            Some(own) => name == own || name == RESULT || self.in_walks().any(|known| name == known),
        };
        match (known, walk) {
            (true, _) => Ok(name),
            (false, None) => Err(format!("{name} is not known; there is {}", self.names.join(", "))),
            (false, Some(own)) => {
                let known: Vec<&str> = std::iter::once(own).chain(self.in_walks()).collect();
                Err(format!("{name} can't be used in a walk; there is {}", known.join(", ")))
            }
        }
    }

    fn call(&mut self, called: CallExpr, depth: usize, walk: Option<&str>) -> Result<CallExpr, String> {
        let CallExpr { func_name, target, mut args } = called;
        if !OPERATORS.contains(&func_name.as_str()) && !FUNCTIONS.contains(&func_name.as_str()) {
            let name = func_name.trim_matches('_');
            return Err(format!("{name}() is not known; there is {}", FUNCTIONS.join(", ")));
        }
        if walk.is_some() && func_name == operators::ADD {
            // The step of a walk itself: the result so far, and one more.
            let collects = args.first().is_some_and(|first| first.expr == Expr::Ident(RESULT.to_owned()));
            if !collects {
                return Err("a walk can't add".to_owned());
            }
            if let Some(IdedExpr { expr: Expr::List(list), .. }) = args.get_mut(1) {
                let one = self.all(std::mem::take(&mut list.elements), depth, walk)?;
                *list = ListExpr::new(one);
            }
            return Ok(CallExpr { func_name, target: None, args });
        }
        let target = target.map(|target| self.checked(*target, depth + 1, walk).map(Box::new)).transpose()?;
        Ok(CallExpr { func_name, target, args: self.all(args, depth, walk)? })
    }

    fn entry(&mut self, entry: IdedEntryExpr, depth: usize) -> Result<IdedEntryExpr, String> {
        let EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) = entry.expr else {
            return Err("it makes something that is not supported".to_owned());
        };
        let (key, value) = (self.checked(key, depth + 1, None)?, self.checked(value, depth + 1, None)?);
        Ok(IdedEntryExpr { id: entry.id, expr: EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) })
    }

    fn walk(&mut self, walked: ComprehensionExpr, depth: usize, walk: Option<&str>) -> Result<Expr, String> {
        if walk.is_some() {
            return Err("a walk can't walk again".to_owned());
        }
        self.walks += 1;
        if self.walks > MOST_WALKS {
            return Err(format!("it walks more than {MOST_WALKS} times"));
        }
        let id = walked.iter_range.id;
        let range = self.checked(walked.iter_range, depth + 1, None)?;
        let bounded = if matches!(walked.accu_init.expr, Expr::List(_)) { COLLECTED } else { WALKED };
        Ok(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: IdedExpr { id, expr: call(bounded, vec![range]) },
            loop_step: self.checked(walked.loop_step, depth + 1, Some(&walked.iter_var))?,
            iter_var: walked.iter_var,
            iter_var2: walked.iter_var2,
            accu_var: walked.accu_var,
            accu_init: walked.accu_init,
            loop_cond: walked.loop_cond,
            result: walked.result,
        })))
    }
}

fn call(function: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args })
}

/// What an expression is evaluated with.
pub(crate) struct Variables(Context<'static>);

impl Variables {
    pub fn new() -> Self {
        let mut context = Context::empty();
        context.add_function("contains", contains);
        context.add_function("endsWith", functions::ends_with);
        context.add_function("int", functions::int);
        context.add_function("size", functions::size);
        context.add_function("startsWith", functions::starts_with);
        context.add_function("string", functions::string);
        context.add_function(HAS, has);
        context.add_function(WALKED, walked);
        context.add_function(COLLECTED, collected);
        Self(context)
    }

    /// Values that were read, by their names.
    pub fn of<'a>(values: impl IntoIterator<Item = (&'a str, serde_json::Value)>) -> Self {
        values.into_iter().fold(Self::new(), |variables, (name, value)| variables.with(name, seen(value)))
    }

    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.add_variable_from_value(name, value);
        self
    }
}

/// Of text alone: the library's own says of everything else that it does not contain.
#[expect(clippy::needless_pass_by_value, reason = "the library's way of declaring functions")]
fn contains(This(this): This<Arc<String>>, part: Arc<String>) -> bool {
    this.contains(part.as_str())
}

fn has(context: &FunctionContext, of: Value, field: Arc<String>) -> Result<bool, ExecutionError> {
    match of {
        Value::Map(map) => Ok(map.get(&Key::String(field)).is_some()),
        _ => Err(context.error("")),
    }
}

fn walked(context: &FunctionContext, over: Value) -> Result<Value, ExecutionError> {
    let list = match over {
        Value::List(list) => list,
        Value::Map(map) => {
            let mut keys: Vec<&Key> = map.map.keys().collect();
            keys.sort();
            Arc::new(keys.into_iter().map(Value::from).collect())
        }
        _ => return Err(context.error("")),
    };
    let list = Value::List(list);
    if weight(&list) > HEAVIEST { Err(context.error("")) } else { Ok(list) }
}

fn collected(context: &FunctionContext, over: Value) -> Result<Value, ExecutionError> {
    match walked(context, over)? {
        Value::List(list) if list.len() <= MOST_COLLECTED => Ok(Value::List(list)),
        _ => Err(context.error("")),
    }
}

/// How much it is to copy.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::List(list) => list.iter().map(weight).sum(),
        Value::Map(map) => map.map.iter().map(|(key, value)| weight(&Value::from(key)) + weight(value)).sum(),
        Value::String(text) => text.len() / 8,
        _ => 0,
    };
    inside + 1
}

/// What kind of value it is, for people.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Int(_) | Value::UInt(_) => "a whole number",
        Value::Float(_) => "a number that is not whole",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        _ => "something else",
    }
}

/// JSON as expressions see it: a whole number is one, whatever its sign.
pub(crate) fn seen(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(is) => Value::Bool(is),
        serde_json::Value::Number(number) => number_seen(&number),
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(list) => Value::List(Arc::new(list.into_iter().map(seen).collect())),
        serde_json::Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (Key::from(name), seen(value)));
            Value::Map(Map { map: Arc::new(fields.collect::<HashMap<_, _>>()) })
        }
    }
}

fn number_seen(number: &Number) -> Value {
    let whole = number.as_i64().map(Value::Int).or_else(|| number.as_u64().map(Value::UInt));
    whole.or_else(|| number.as_f64().map(Value::Float)).unwrap_or(Value::Null)
}

/// What an expression made, as JSON; none where JSON has nothing like it.
pub(crate) fn json(value: &Value) -> Option<serde_json::Value> {
    match value {
        Value::Null => Some(serde_json::Value::Null),
        Value::Bool(is) => Some((*is).into()),
        Value::Int(number) => Some((*number).into()),
        Value::UInt(number) => Some((*number).into()),
        Value::Float(number) => Number::from_f64(*number).map(Into::into),
        Value::String(text) => Some(text.as_str().into()),
        Value::List(list) => list.iter().map(json).collect(),
        Value::Map(map) => {
            // In the order of their names, so that the same expression always sends the same bytes.
            map.map.iter().map(|(key, value)| Some((key.to_string(), json(value)?))).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const NAMES: &[&str] = &["body", "pod", "status", "text"];

    fn variables(body: serde_json::Value) -> Variables {
        let text = body.to_string();
        Variables::new()
            .with("status", 200)
            .with("pod", seen(json!({"name": "app-0"})))
            .with("text", text)
            .with("body", seen(body))
    }

    fn yields(cel: &str, body: serde_json::Value) -> Result<serde_json::Value, String> {
        let value = Expression::read(cel, NAMES).unwrap().evaluate(&variables(body))?;
        Ok(json(&value).unwrap())
    }

    #[rstest]
    #[case::a_field("body.a.b", json!(1))]
    #[case::a_field_by_its_name("body['a']['b']", json!(1))]
    #[case::arithmetic("body.a.b + 2 * 3 - 1", json!(6))]
    #[case::past_the_signed_ones("body.huge", json!(u64::MAX))]
    #[case::not_whole("body.half", json!(0.5))]
    #[case::has("has(body.a) && !has(body.b)", json!(true))]
    #[case::a_number_in_a_text("int(body.wide)", json!(1_u64 << 60))]
    #[case::text("string(body.a.b) + '!'", json!("1!"))]
    #[case::parts_of_text("text.contains('wide') && text.startsWith('{') && text.endsWith('}')", json!(true))]
    #[case::membership("'x' in body.list && size(body.list) == 2", json!(true))]
    #[case::a_choice("status == 200 ? 'up' : 'down'", json!("up"))]
    #[case::made("{'to': [body.a.b, pod.name]}", json!({"to": [1, "app-0"]}))]
    #[case::all("body.list.all(one, one != '')", json!(true))]
    #[case::exists("body.list.exists(one, one == 'y')", json!(true))]
    #[case::exists_one("body.list.exists_one(one, one == 'y')", json!(true))]
    #[case::filter("body.list.filter(one, one != 'x')", json!(["y"]))]
    #[case::map("body.list.map(one, one == pod.name)", json!([false, false]))]
    #[case::map_some("body.list.map(one, one > 'x', size(one))", json!([1]))]
    #[case::a_walk_after_a_walk("body.list.filter(one, one == 'y').map(one, one)", json!(["y"]))]
    #[case::a_walk_over_names_in_order("body.map(name, name)", json!(["a", "half", "huge", "list", "wide"]))]
    fn what_is_asked_of_an_answer_is_found(#[case] cel: &str, #[case] expected: serde_json::Value) {
        let body =
            json!({"a": {"b": 1}, "huge": u64::MAX, "half": 0.5, "wide": "1152921504606846976", "list": ["x", "y"]});
        assert_eq!(yields(cel, body), Ok(expected));
    }

    /// What the library alone would call false, so that these would be true.
    #[rstest]
    #[case::two_fields_of_nothing("body.leader == body.header.member_id", "does not fit")]
    #[case::not_a_field_of_nothing("!body.sealed", "does not fit")]
    #[case::no_field_of_nothing("!has(body.error)", "has() was asked of something that has no fields")]
    #[case::not_in_what_is_no_text("!body.contains('error')", "does not fit")]
    #[case::all_of_nothing("body.all(one, one.ok)", "neither a list nor a map")]
    fn nothing_is_no_answer(
        #[case] cel: &str,
        #[case] why: &str,
        #[values(json!(null), json!(7), json!(true))] body: serde_json::Value,
    ) {
        let problem = yields(cel, body.clone()).unwrap_err();
        assert!(problem.contains(why), "{cel} of {body}: {problem}");
    }

    #[rstest]
    #[case::a_missing_field("body.b", "there is no b")]
    #[case::a_missing_entry("body.list[7]", "a list is shorter than that")]
    #[case::no_number("int(body.word)", "int() can't take what it was given")]
    #[case::two_kinds("body.word + 1", "does not fit")]
    #[case::no_truth("body.word && true", "does not fit")]
    #[case::too_much("9223372036854775807 + 1", "does not fit")]
    #[case::by_zero("1 / 0", "does not fit")]
    fn what_goes_wrong_is_said_and_nothing_is_repeated(#[case] cel: &str, #[case] why: &str) {
        let problem = yields(cel, json!({"word": "hvs.secret", "list": []})).unwrap_err();
        assert!(problem.contains(why) && !problem.contains("secret"), "{cel}: {problem}");
    }

    #[rstest]
    #[case::no_expression("body.", "Syntax error")]
    #[case::nothing("", "Syntax error")]
    #[case::an_unknown_name("bodi.a", "bodi is not known; there is body, pod, status, text")]
    #[case::an_unknown_function("now()", "now() is not known")]
    #[case::an_unknown_function_with_another_name("_now()", "now() is not known")]
    #[case::less_than_nothing("-body.a", "-() is not known")]
    #[case::the_time("timestamp('2026-01-01T00:00:00Z')", "timestamp() is not known")]
    #[case::a_regular_expression("text.matches('a*')", "matches() is not known")]
    #[case::a_message("Kind{a: 1}", "not supported")]
    #[case::a_walk_in_a_walk("body.all(x, x.all(y, y))", "a walk can't walk again")]
    #[case::a_walk_that_copies_all("body.map(x, body)", "body can't be used in a walk; there is x, pod, status")]
    #[case::a_walk_that_grows("body.map(x, x + x)", "a walk can't add")]
    #[case::a_walk_that_makes("body.map(x, [x, x])", "a walk can't make lists or maps")]
    #[case::a_walk_that_makes_maps("body.map(x, {'a': x})", "a walk can't make lists or maps")]
    #[case::a_filter_that_grows("body.filter(x, x + x == x)", "a walk can't add")]
    #[case::many_walks("body.map(a,a).map(a,a).map(a,a).map(a,a).map(a,a)", "walks more than 4 times")]
    fn what_may_not_be_said_is_refused_when_it_is_read(#[case] cel: &str, #[case] why: &str) {
        let problem = Expression::read(cel, NAMES).unwrap_err();
        assert!(problem.contains(why), "{cel}: {problem}");
    }

    #[rstest]
    #[case::parentheses("(", "1", ")")]
    #[case::lists("[", "1", "]")]
    #[case::denials("!", "true", "")]
    #[case::choices("true?1:", "1", "")]
    #[case::sums("1+", "1", "")]
    #[case::fields("", "body", ".a")]
    #[case::indices("", "body", "[0]")]
    #[case::walks("[1].map(x,", "1", ")")]
    fn no_nesting_is_too_deep_to_be_refused(#[case] before: &str, #[case] middle: &str, #[case] behind: &str) {
        for times in [40, 100, 1000] {
            let text = format!("{}{middle}{}", before.repeat(times), behind.repeat(times));
            let Ok(read) = Expression::read(&text, NAMES) else { continue };
            assert!(before == "(" || text.len() <= LONGEST, "{read:?}");
            assert!(read.evaluate(&variables(json!({}))).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_read_can_be_evaluated_on_a_small_stack() {
        let deepest = |times: usize| format!("{}1", "1+".repeat(times));
        assert!(Expression::read(&deepest(DEEPEST + 1), NAMES).is_err());
        let read = Expression::read(&deepest(DEEPEST), NAMES).unwrap();
        let evaluated = thread::Builder::new().stack_size(1 << 20).spawn(move || read.evaluate(&Variables::new()));
        assert_eq!(json(&evaluated.unwrap().join().unwrap().unwrap()), Some(json!(DEEPEST + 1)));
    }

    #[test]
    fn a_list_that_is_too_long_is_not_walked() {
        let numbers = |length: usize| yields("body.all(one, one == 0)", json!(vec![0; length]));
        assert_eq!(numbers(HEAVIEST - 1), Ok(json!(true)));
        assert!(numbers(HEAVIEST).unwrap_err().contains("too long"));
        let collected = |length: usize| yields("body.map(one, one) == body", json!(vec![0; length]));
        assert_eq!(collected(MOST_COLLECTED), Ok(json!(true)));
        assert!(collected(MOST_COLLECTED + 1).unwrap_err().contains("more than 256 entries"));
        let kept = yields("body.filter(one, one == 0) == body", json!(vec![0; MOST_COLLECTED + 1]));
        assert!(kept.is_err(), "what it makes is copied for every step");
        let texts = |length: usize| yields("body.all(one, one != '')", json!(vec!["x".repeat(length)]));
        assert!(texts(8 * HEAVIEST - 16).is_ok());
        assert!(texts(8 * HEAVIEST).unwrap_err().contains("too long"));
    }
}
