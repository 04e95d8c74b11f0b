//! The grammar of a label selector in a query: `a=b,c in (d,e),!f`.
#![expect(clippy::wildcard_enum_match_arm, reason = "a parser names the tokens that it takes; all others are an error")]

use std::collections::BTreeSet;

use super::error::FieldError;
use super::metadata;
use super::selector::Requirement;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    In,
    NotIn,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Open,
    Closed,
    Comma,
    Error(String),
    End,
}

impl Token {
    fn of_symbol(text: &str) -> Option<Self> {
        Some(match text {
            "!" => Self::Not,
            "=" => Self::Equals,
            "==" => Self::DoubleEquals,
            "!=" => Self::NotEquals,
            ">" => Self::Greater,
            "<" => Self::Less,
            "(" => Self::Open,
            ")" => Self::Closed,
            "," => Self::Comma,
            _ => return None,
        })
    }

    /// As messages show it.
    fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Error(text) => text,
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Not => "!",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::Open => "(",
            Self::Closed => ")",
            Self::Comma => ",",
            Self::End => "",
        }
    }

    /// Where a value is expected, the two words that are operators elsewhere are values.
    fn into_value(self) -> Self {
        match self {
            Self::In | Self::NotIn => Self::Word(self.text().to_owned()),
            Self::Word(_)
            | Self::Not
            | Self::Equals
            | Self::DoubleEquals
            | Self::NotEquals
            | Self::Greater
            | Self::Less
            | Self::Open
            | Self::Closed
            | Self::Comma
            | Self::Error(_)
            | Self::End => self,
        }
    }
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(&first) = rest.peek() {
        if matches!(first, ' ' | '\t' | '\r' | '\n') {
            rest.next();
        } else if is_symbol(first) {
            // The longest symbol that there is.
            let mut symbol = String::new();
            while let Some(&next) = rest.peek().filter(|next| is_symbol(**next)) {
                let longer = format!("{symbol}{next}");
                if !symbol.is_empty() && Token::of_symbol(&longer).is_none() {
                    break;
                }
                symbol = longer;
                rest.next();
            }
            let found = Token::of_symbol(&symbol);
            tokens.push(found.unwrap_or_else(|| Token::Error(format!("error expected: keyword found '{symbol}'"))));
        } else {
            let mut word = String::new();
            while let Some(&next) =
                rest.peek().filter(|next| !is_symbol(**next) && !matches!(next, ' ' | '\t' | '\r' | '\n'))
            {
                word.push(next);
                rest.next();
            }
            tokens.push(match word.as_str() {
                "in" => Token::In,
                "notin" => Token::NotIn,
                _ => Token::Word(word),
            });
        }
    }
    tokens.push(Token::End);
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn ahead(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End).into_value()
    }

    fn operator(&mut self) -> Token {
        let token = self.tokens.get(self.at).cloned().unwrap_or(Token::End);
        self.at += 1;
        token
    }

    fn value(&mut self) -> Token {
        self.operator().into_value()
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.value();
        let absent = token == Token::Not;
        if absent {
            token = self.value();
        }
        let Token::Word(key) = token else { return Err(format!("found '{}', expected: identifier", token.text())) };
        if let Some(why) = joined(&metadata::qualified_problems(&key)) {
            return Err(FieldError::invalid("<nil>", key.as_str(), why).to_string());
        }
        match self.ahead() {
            Token::End | Token::Comma if absent => return Ok(Requirement::Absent(key)),
            Token::End | Token::Comma => return Ok(Requirement::Exists(key)),
            _ if absent => return Ok(Requirement::Absent(key)),
            _ => {}
        }
        let operator = self.operator();
        let values = match &operator {
            Token::In | Token::NotIn => self.set()?,
            Token::Equals | Token::DoubleEquals | Token::NotEquals | Token::Greater | Token::Less => self.single()?,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        };
        check_values(&operator, &values)?;
        let number = values.first().and_then(|value| value.parse::<i64>().ok()).unwrap_or(0);
        Ok(match operator {
            Token::NotIn | Token::NotEquals => Requirement::NotIn(key, values),
            Token::Greater => Requirement::Greater(key, number),
            Token::Less => Requirement::Less(key, number),
            _ => Requirement::In(key, values),
        })
    }

    fn single(&mut self) -> Result<BTreeSet<String>, String> {
        if matches!(self.ahead(), Token::End | Token::Comma) {
            return Ok(BTreeSet::from([String::new()]));
        }
        match self.value() {
            Token::Word(value) => Ok(BTreeSet::from([value])),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn set(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.value();
        if open != Token::Open {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        match self.ahead() {
            Token::Word(_) | Token::Comma => {
                let values = self.list()?;
                self.value();
                Ok(values)
            }
            Token::Closed => {
                self.value();
                Ok(BTreeSet::from([String::new()]))
            }
            other => Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
    }

    /// Values with commas in between, up to the parenthesis; an empty one counts.
    fn list(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.value() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.ahead() {
                        Token::Comma => {}
                        Token::Closed => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Comma => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.ahead() {
                        Token::Closed => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        Token::Comma => {
                            self.value();
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
    }
}

fn joined(problems: &[String]) -> Option<String> {
    (!problems.is_empty()).then(|| problems.join("; "))
}

fn check_values(operator: &Token, values: &BTreeSet<String>) -> Result<(), String> {
    let mut errors = Vec::new();
    for (index, value) in values.iter().enumerate() {
        if matches!(operator, Token::Greater | Token::Less) && value.parse::<i64>().is_err() {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid(format!("values[{index}]"), value.as_str(), why).to_string());
        }
    }
    for (index, value) in values.iter().enumerate() {
        if let Some(why) = joined(&metadata::label_value_problems(value)) {
            errors.push(FieldError::invalid(format!("values[{index}]"), value.as_str(), why).to_string());
        }
    }
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// What the text asks for.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.ahead() {
            Token::Word(_) | Token::Not => {
                let made = parser.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
                requirements.push(made);
                match parser.value() {
                    Token::End => return Ok(requirements),
                    Token::Comma => match parser.ahead() {
                        Token::Word(_) | Token::Not => {}
                        other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                    },
                    other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
                }
            }
            Token::End => return Ok(requirements),
            other => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text())),
        }
    }
}
