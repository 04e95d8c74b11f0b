//! Makes answers of two clusters comparable: members are called by their roles, and numbers that nobody could predict are hidden.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};

use super::{
    LATER, MEMBERS, Side,
    script::{Says, Who},
};

/// Positions, terms and sizes: what they are differs from run to run. That they are numbers is compared.
const UNPREDICTABLE: [&str; 9] = [
    "cluster_id",
    "revision",
    "raft_term",
    "raftTerm",
    "raftIndex",
    "raftAppliedIndex",
    "dbSize",
    "dbSizeInUse",
    "dbSizeQuota",
];

/// Who plays which role, and under which id.
#[derive(Default)]
pub(super) struct Cast {
    roles: Vec<(Who, String)>,
    ids: BTreeMap<String, String>,
    /// The token that was given last.
    pub token: Option<String>,
}

impl Cast {
    pub fn member(&self, who: Who) -> Result<String> {
        match who {
            Who::Founding(number) => Ok((*MEMBERS.get(number).context("no such member")?).to_owned()),
            Who::Learner => Ok(LATER.to_owned()),
            Who::Leader | Who::One | Who::Other => {
                let role = self.roles.iter().find(|(role, _)| *role == who);
                role.map(|(_, member)| member.clone()).context("the roles are not assigned yet")
            }
        }
    }

    /// Asks everybody who leads.
    pub async fn assign(&mut self, side: &mut Side<'_>) -> Result<()> {
        let mut leads = String::new();
        for member in MEMBERS {
            let (_, text) = side
                .ask(member, Method::POST, "/v3/maintenance/status", "{}", None)
                .await?
                .with_context(|| format!("{member} does not answer"))?;
            let status: Value = serde_json::from_str(&text)?;
            let own = status["header"]["member_id"].as_str().context("no id")?.to_owned();
            leads = status["leader"].as_str().with_context(|| format!("{member} follows nobody"))?.to_owned();
            self.ids.insert(own, member.to_owned());
        }
        let leader = self.ids.get(&leads).context("a leader that is no member")?.clone();
        let mut others = MEMBERS.into_iter().filter(|member| *member != leader).map(str::to_owned);
        let (one, other) = others.next().zip(others.next()).context("three members")?;
        self.roles = vec![(Who::Leader, leader), (Who::One, one), (Who::Other, other)];
        Ok(())
    }

    /// Notes the ids in a list of members, so that a new one is known by name.
    pub fn learn(&mut self, text: &str) {
        let Ok(answer) = serde_json::from_str::<Value>(text) else { return };
        if let Some(token) = answer["token"].as_str() {
            self.token = Some(token.to_owned());
        }
        if let Some(id) = answer["member"]["ID"].as_str() {
            self.ids.retain(|_, name| name != LATER);
            self.ids.insert(id.to_owned(), LATER.to_owned());
        }
    }

    pub fn body(&self, says: &Says, learner_url: &str) -> Result<String> {
        let id = |who| {
            let member = self.member(who)?;
            let found = self.ids.iter().find(|(_, name)| **name == member).map(|(id, _)| id.clone());
            found.with_context(|| format!("the id of {member} is not known"))
        };
        Ok(match says {
            Says::Nothing => String::new(),
            Says::Text(text) => (*text).to_owned(),
            Says::Target(who) => json!({"targetID": id(*who)?}).to_string(),
            Says::Id(who) => json!({"ID": id(*who)?}).to_string(),
            Says::Learner => json!({"peerURLs": [learner_url], "isLearner": true}).to_string(),
        })
    }

    fn role(&self, member: &str) -> String {
        let role = self.roles.iter().find(|(_, name)| name == member);
        role.map_or_else(|| member.to_owned(), |(who, _)| who.to_string())
    }

    /// The answer with roles in the place of members.
    pub fn canonical(&self, code: u16, text: &str) -> String {
        let body = if let Ok(body) = serde_json::from_str::<Value>(text) {
            self.clean("", &body).to_string()
        } else {
            // The checks of /readyz come in no order.
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            lines.join("|")
        };
        format!("{code} {body}")
    }

    fn clean(&self, name: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) if fields.contains_key("ID") => self.clean_member(value),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.clean(name, value))).collect()
            }
            Value::Array(items) if name == "members" => self.clean_members(items),
            Value::Array(items) => items.iter().map(|item| self.clean(name, item)).collect(),
            Value::String(text) if UNPREDICTABLE.contains(&name) && text.parse::<u64>().is_ok() => json!("<number>"),
            // Letters, and the position at which it was given.
            Value::String(text) if name == "token" && text.split('.').count() == 2 => json!("<token>"),
            Value::String(text) => match self.ids.get(text) {
                Some(member) => json!(format!("<{}>", self.role(member))),
                None => value.clone(),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// One member: its URLs are on different hosts and ports, that there are as many is compared.
    fn clean_member(&self, member: &Value) -> Value {
        let mut clean = serde_json::Map::new();
        for (name, value) in member.as_object().into_iter().flatten() {
            let value = match (name.as_str(), value) {
                ("name", Value::String(name)) => json!(self.role(name)),
                ("peerURLs" | "clientURLs", Value::Array(urls)) => json!(format!("{} of them", urls.len())),
                _ => self.clean(name, value),
            };
            clean.insert(name.clone(), value);
        }
        Value::Object(clean)
    }

    /// The members by their roles: their order is that of their ids, which is chance; that it is that order is compared.
    fn clean_members(&self, members: &[Value]) -> Value {
        let id = |member: &Value| member["ID"].as_str().and_then(|id| id.parse::<u64>().ok());
        let ordered = members.is_sorted_by_key(id);
        let mut clean: Vec<Value> = members.iter().map(|member| self.clean_member(member)).collect();
        clean.sort_by_key(ToString::to_string);
        json!({"in the order of their ids": ordered, "members": clean})
    }
}
