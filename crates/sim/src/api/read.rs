//! Reading one object or many.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::definition;
use super::error::{self, Answer};
use super::key::Key;
use super::list_options;
use super::object;
use super::query::{Match, Query};
use super::resource::{Resource, Rules};
use super::selector::{Fields, Labels};
use super::store::Store;
use super::write::Target;

const TOO_OLD_TO_CONTINUE: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder \
    of the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
    modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// What a continue token says: which revision the list is of, and from which key it goes on.
#[derive(Debug, Serialize, Deserialize)]
struct Resume {
    v: String,
    rv: i64,
    start: String,
}

impl Resume {
    /// A token for a list that goes on with whatever there is then.
    const NOW: i64 = -1;

    fn encode(revision: i64, start: &str) -> String {
        let token = Self { v: "meta.k8s.io/v1".to_owned(), rv: revision, start: start.to_owned() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn decode(token: &str) -> Answer<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('='));
        let read = bytes.ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        read.filter(|token| token.rv != 0)
            .ok_or_else(|| error::bad_request("invalid continue token: continue key is not valid: unexpected content"))
    }
}

/// A list, ready to be written out.
#[derive(Debug)]
pub(crate) struct List {
    kind: String,
    api_version: String,
    /// Items of built-in kinds don't repeat kind and apiVersion.
    bare_items: bool,
    revision: u64,
    resume: Option<String>,
    remaining: Option<usize>,
    pub(crate) items: Vec<Arc<Value>>,
}

impl List {
    /// The list's own metadata.
    pub(crate) fn metadata(&self) -> Value {
        serde_json::to_value(ListMetadata(self)).unwrap_or_default()
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("apiVersion", &self.api_version)?;
        map.serialize_entry("metadata", &ListMetadata(self))?;
        map.serialize_entry("items", &Items(self))?;
        map.end()
    }
}

struct ListMetadata<'a>(&'a List);

impl Serialize for ListMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resourceVersion", &self.0.revision.to_string())?;
        // Lists of custom resources always have the field.
        match &self.0.resume {
            Some(resume) => map.serialize_entry("continue", resume)?,
            None if !self.0.bare_items => map.serialize_entry("continue", "")?,
            None => {}
        }
        if let Some(remaining) = self.0.remaining {
            map.serialize_entry("remainingItemCount", &remaining)?;
        }
        map.end()
    }
}

struct Items<'a>(&'a List);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.items.len()))?;
        for item in &self.0.items {
            if self.0.bare_items {
                list.serialize_element(&Bare(item))?;
            } else {
                list.serialize_element(&**item)?;
            }
        }
        list.end()
    }
}

struct Bare<'a>(&'a Value);

impl Serialize for Bare<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.as_object().into_iter().flatten();
        serializer.collect_map(fields.filter(|(field, _)| *field != "kind" && *field != "apiVersion"))
    }
}

/// What to list or watch.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) labels: Labels,
    pub(crate) fields: Fields,
}

impl Selection {
    pub(crate) fn new(target: &Target, query: &Query) -> Answer<Self> {
        let version = target.served()?;
        let mut fields = query.fields.clone();
        if !target.name.is_empty() {
            // A watch of one object by its path.
            fields = format!("metadata.name={}", target.name);
        }
        Ok(Self {
            labels: Labels::parse(&query.labels)?,
            fields: Fields::parse(&fields, &target.resource, version)?,
            resource: Arc::clone(&target.resource),
            version: target.version.clone(),
            namespace: target.namespace.clone(),
        })
    }

    pub(crate) fn selects(&self, stored: &Value) -> bool {
        self.labels.matches(object::meta(stored, "labels")) && self.fields.matches(stored)
    }

    /// Whether a list may say how many items are left.
    fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn view(&self, stored: &Arc<Value>) -> Arc<Value> {
        match self.resource.version(&self.version) {
            Some(version) => definition::view(&self.resource, version, stored),
            None => Arc::clone(stored),
        }
    }
}

/// A revision in a query; none where it is unset.
pub(crate) fn parse_revision(text: &str) -> Answer<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| format!("strconv.ParseUint: parsing {text:?}: invalid syntax")).map_err(|why| {
        let why = error::FieldError::invalid("resourceVersion", text, why);
        error::bad_request(format!("invalid resource version: {why}"))
    })
}

/// Refuses where the server can't show these objects in the version that was asked for.
pub(crate) fn listable(store: &Store, selection: &Selection) -> Answer<()> {
    if store.is_unlistable(&selection.resource.id) {
        let kind = &selection.resource.kind;
        return Err(error::unknown(500, &format!("conversion webhook for {kind} failed: connection refused")));
    }
    Ok(())
}

impl Store {
    /// One object; `at` is an older revision.
    pub(crate) fn read(&self, target: &Target, query: &Query, at: Option<u64>) -> Answer<Arc<Value>> {
        let version = target.served()?;
        let now = at.unwrap_or(self.revision());
        // Reading one object, the server takes a revision that is none for its own fault.
        let asked = parse_revision(&query.revision)
            .map_err(|status| error::unknown(500, status.message.trim_start_matches("invalid resource version: ")))?;
        if let Some(asked) = asked
            && asked > now
        {
            return Err(error::too_large_revision(asked, now));
        }
        let stored = self.get_at(&target.resource.storage, &target.key(), now).ok_or_else(|| target.not_found())?;
        Ok(definition::view(&target.resource, version, stored))
    }

    /// A list, or a page of one.
    pub(crate) fn list_selected(&self, selection: &Selection, query: &Query, at: Option<u64>) -> Answer<List> {
        let now = at.unwrap_or(self.revision());
        let asked = parse_revision(&query.revision)?;
        list_options::check(query)?;
        listable(self, selection)?;
        // A list that may be of any revision is answered whole, whatever the limit.
        let limit = if asked == Some(0) { 0 } else { query.limit };
        // A page of a list that names a revision is of that one.
        let exact = query.revision_match == Match::Exact || (query.revision_match == Match::Unset && limit > 0);
        let (mut revision, mut from) = (now, None);
        if query.resume.is_empty() {
            match asked {
                Some(asked) if asked > now => return Err(error::too_large_revision(asked, now)),
                Some(asked) if asked > 0 && exact => {
                    if asked < self.compacted() {
                        let message = format!("The resourceVersion for the provided list is too old: {asked}");
                        return Err(error::expired(message, None));
                    }
                    revision = asked;
                }
                Some(_) | None => {}
            }
        } else {
            let token = Resume::decode(&query.resume)?;
            if asked.is_some_and(|asked| asked != 0) {
                return Err(error::bad_request("specifying resource version is not allowed when using continue"));
            }
            from = Some(Key::parse(&token.start));
            if let Ok(pinned) = u64::try_from(token.rv) {
                if pinned < self.compacted() {
                    let resume = Resume::encode(Resume::NOW, &token.start);
                    return Err(error::expired(TOO_OLD_TO_CONTINUE, Some(resume)));
                }
                revision = pinned;
            }
        }
        let mut found = self.list_at(&selection.resource.storage, &selection.namespace, revision, from);
        let mut items = Vec::new();
        let mut last = None;
        for (key, stored) in found.by_ref().filter(|(_, stored)| selection.selects(stored)) {
            items.push(selection.view(stored));
            last = Some(key);
            if limit > 0 && items.len() == limit {
                break;
            }
        }
        // Whether what is left would be selected is for the next page to find out. A name selects one, and no page follows.
        let left = if selection.fields.names_one() { 0 } else { found.count() };
        // The next page starts right behind the last key: no key can be between it and this one.
        let resume = last
            .filter(|_| left > 0)
            .map(|key| Resume::encode(i64::try_from(revision).unwrap_or(i64::MAX), &format!("{}\0", key.text())));
        Ok(List {
            kind: selection.resource.list_kind.clone(),
            api_version: selection.resource.api_version(&selection.version),
            bare_items: selection.resource.rules != Rules::Custom,
            revision,
            remaining: resume.as_ref().filter(|_| selection.is_everything()).map(|_| left),
            resume,
            items,
        })
    }
}
