//! Makes answers of two clusters comparable: members are called by their roles, and what nobody could predict is hidden.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Application, Side, play::Who};

/// Who plays which role, and what stands for a member in answers.
pub(super) struct Cast {
    members: [&'static str; 3],
    later: &'static str,
    roles: Vec<(Who, String)>,
    /// The ids of members, and whose they are.
    ids: BTreeMap<String, String>,
    /// Addresses: what they are written as, whose they are, and which of its addresses it is.
    addresses: Vec<(String, String, &'static str)>,
    /// The token that was given last.
    pub token: Option<String>,
    /// What opens a seal.
    pub keys: Vec<String>,
}

impl Cast {
    pub fn new<A: Application>(side: &Side<'_, A>) -> Self {
        let mut cast = Self {
            members: A::MEMBERS,
            later: A::LATER,
            roles: Vec::new(),
            ids: BTreeMap::new(),
            addresses: Vec::new(),
            token: None,
            keys: Vec::new(),
        };
        for member in A::MEMBERS.into_iter().chain([A::LATER]) {
            let addresses = match side {
                Side::Real(real) => real.addresses(member),
                Side::Simulated(..) => A::simulated_addresses(member),
            };
            for (number, address) in addresses.into_iter().enumerate() {
                let which = if number == 0 { "clients'" } else { "peers'" };
                cast.addresses.push((address, member.to_owned(), which));
            }
        }
        cast
    }

    pub fn member(&self, who: Who) -> Result<String> {
        match who {
            Who::Founding(number) => Ok((*self.members.get(number).context("no such member")?).to_owned()),
            Who::Later => Ok(self.later.to_owned()),
            Who::Leader | Who::One | Who::Other => {
                let role = self.roles.iter().find(|(role, _)| *role == who);
                role.map(|(_, member)| member.clone()).context("the roles are not assigned yet")
            }
        }
    }

    /// This one leads, and the others follow.
    pub fn assign(&mut self, leader: &str) -> Result<()> {
        let former = self.roles.first().map(|(_, member)| member.clone());
        let mut others: Vec<&str> = self.members.into_iter().filter(|member| *member != leader).collect();
        others.sort_by_key(|member| former.as_deref() != Some(*member));
        let (one, other) = others.first().zip(others.get(1)).context("three members")?;
        let role = |who, member: &str| (who, member.to_owned());
        self.roles = vec![role(Who::Leader, leader), role(Who::One, one), role(Who::Other, other)];
        Ok(())
    }

    /// This id is that member's, and no other is.
    pub fn identify(&mut self, id: &str, member: &str) {
        if self.ids.get(id).is_none_or(|known| known != member) {
            self.ids.retain(|_, known| known != member);
            self.ids.insert(id.to_owned(), member.to_owned());
        }
    }

    pub fn known_by_id(&self, id: &str) -> Option<String> {
        self.ids.get(id).cloned()
    }

    pub fn known_by_address(&self, text: &str) -> Option<String> {
        self.addresses
            .iter()
            .find(|(address, ..)| text.ends_with(address.as_str()))
            .map(|(_, member, _)| member.clone())
    }

    /// The text with this member's name, id and peers' address in it.
    pub fn fill(&self, text: &str, who: Who) -> Result<String> {
        let member = self.member(who)?;
        let mut text = text.replace("$name", &member);
        if text.contains("$id") {
            let id = self.ids.iter().find(|(_, name)| **name == member).map(|(id, _)| id);
            text = text.replace("$id", id.with_context(|| format!("the id of {member} is not known"))?);
        }
        let url = self.addresses.iter().find(|(_, name, which)| *name == member && *which == "peers'");
        Ok(url.map_or_else(|| text.clone(), |(address, ..)| text.replace("$url", &format!("http://{address}"))))
    }

    pub fn role(&self, member: &str) -> String {
        let role = self.roles.iter().find(|(_, name)| name == member);
        role.map_or_else(|| member.to_owned(), |(who, _)| who.to_string())
    }

    /// The text with roles in the place of addresses, ids and names.
    pub fn replace(&self, text: &str) -> String {
        if let Some(member) = self.ids.get(text) {
            return format!("<{}>", self.role(member));
        }
        let mut text = text.to_owned();
        for (address, member, which) in &self.addresses {
            text = text.replace(address.as_str(), &format!("<{which} address of {}>", self.role(member)));
        }
        for member in self.members.into_iter().chain([self.later]) {
            if text.contains(member) {
                text = text.replace(member, &self.role(member));
            }
        }
        text
    }

    /// The body with what `hide` takes out hidden, and roles in the place of members.
    pub fn clean(&self, name: &str, value: &Value, hide: &dyn Fn(&str, &Value) -> Option<Value>) -> Value {
        if let Some(hidden) = hide(name, value) {
            return hidden;
        }
        match value {
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (self.replace(name), self.clean(name, value, hide))).collect()
            }
            Value::Array(items) => items.iter().map(|item| self.clean(name, item, hide)).collect(),
            Value::String(text) => json!(self.replace(text)),
            Value::Number(number) => match self.ids.get(&number.to_string()) {
                Some(member) => json!(format!("<{}>", self.role(member))),
                None => value.clone(),
            },
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }
}

/// Items whose order is that of their ids, which is chance: that it is that order is compared.
pub(super) fn by_id(items: &[Value], id: impl Fn(&Value) -> Option<u64>, clean: impl Fn(&Value) -> Value) -> Value {
    let mut cleaned: Vec<Value> = items.iter().map(clean).collect();
    cleaned.sort_by_key(ToString::to_string);
    json!({"in the order of their ids": items.is_sorted_by_key(id), "items": cleaned})
}
