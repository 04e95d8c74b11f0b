//! A request's path and query, taken apart.

use super::delete::Propagation;
use super::error::{self, Answer};
use super::managed_fields::{LONGEST_NAME, is_printable};
use super::patch;
use super::write::UnknownFields;

/// A part of an object with an address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    Status,
    Scale,
    Eviction,
    Binding,
    Finalize,
    /// None that any object has.
    Other,
    /// What its processes write.
    Log,
    /// What only a node could answer: a shell, a port.
    Process,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1` and `/apis/<group>/<version>`
    Resources { group: String, version: String },
    /// A collection, an object or a part of one.
    Objects {
        group: String,
        version: String,
        plural: String,
        namespace: String,
        name: String,
        part: Option<Subresource>,
    },
    /// `/openapi/v3`
    Documents,
    /// `/openapi/v3/…`
    Document(String),
    /// `/version`
    Version,
    /// `/healthz` and its like
    Health,
    /// Anything else.
    Unknown,
}

impl Route {
    pub(crate) fn parse(path: &str) -> Self {
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode_path).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["version"] => Self::Version,
            ["openapi", "v3"] => Self::Documents,
            ["openapi", "v3", rest @ ..] => Self::Document(rest.join("/")),
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version, rest @ ..] => Self::objects("", version, rest),
            ["apis", group, version, rest @ ..] => Self::objects(group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn objects(group: &str, version: &str, rest: &[&str]) -> Self {
        let (namespace, rest) = match rest {
            [] => return Self::Resources { group: group.to_owned(), version: version.to_owned() },
            // Below a namespace, save for the namespace's own parts.
            ["namespaces", namespace, plural, rest @ ..]
                if !(group.is_empty() && rest.is_empty() && matches!(*plural, "status" | "finalize")) =>
            {
                let mut below = vec![*plural];
                below.extend_from_slice(rest);
                (*namespace, below)
            }
            rest => ("", rest.to_vec()),
        };
        let (plural, name, part) = match rest.as_slice() {
            [plural] => (*plural, "", None),
            [plural, name] => (*plural, *name, None),
            [plural, name, part] => match *part {
                "status" => (*plural, *name, Some(Subresource::Status)),
                "scale" => (*plural, *name, Some(Subresource::Scale)),
                "eviction" => (*plural, *name, Some(Subresource::Eviction)),
                "binding" => (*plural, *name, Some(Subresource::Binding)),
                "log" => (*plural, *name, Some(Subresource::Log)),
                "exec" | "attach" | "portforward" => (*plural, *name, Some(Subresource::Process)),
                "finalize" => (*plural, *name, Some(Subresource::Finalize)),
                _ => (*plural, *name, Some(Subresource::Other)),
            },
            _ => return Self::Unknown,
        };
        Self::Objects {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            part,
        }
    }
}

/// Which revision a read accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Unset,
    NotOlderThan,
    Exact,
    Unknown(String),
}

/// The query's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) watch: bool,
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) limit: usize,
    pub(crate) resume: String,
    pub(crate) revision: String,
    pub(crate) revision_match: Match,
    pub(crate) timeout: Option<u64>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) dry_run: bool,
    pub(crate) unknown_fields: UnknownFields,
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) field_manager: String,
    pub(crate) force: Option<bool>,
    /// How much of the object comes with a table's row.
    pub(crate) include_object: String,
}

impl Query {
    pub(crate) fn parse(method: &http::Method, text: &str) -> Answer<Self> {
        let mut query = Self {
            watch: false,
            labels: String::new(),
            fields: String::new(),
            limit: 0,
            resume: String::new(),
            revision: String::new(),
            revision_match: Match::Unset,
            timeout: None,
            bookmarks: false,
            initial_events: None,
            dry_run: false,
            unknown_fields: UnknownFields::Warn,
            grace: None,
            propagation: None,
            field_manager: String::new(),
            force: None,
            include_object: String::new(),
        };
        let mut pairs: Vec<&str> = text.split('&').filter(|pair| !pair.is_empty()).collect();
        // What is said of one parameter depends on others that come before it in the alphabet.
        pairs.sort_unstable();
        for pair in pairs {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            query.set(options(method), &decode(key), decode(value))?;
        }
        Ok(query)
    }

    fn set(&mut self, options: &str, key: &str, value: String) -> Answer<()> {
        let flag = || !matches!(value.as_str(), "false" | "0" | "f" | "F" | "False" | "FALSE");
        let number = || {
            value
                .parse::<i64>()
                .map_err(|_| error::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax")))
        };
        match key {
            "watch" => self.watch = flag(),
            "limit" => self.limit = usize::try_from(number()?).unwrap_or(0),
            "timeoutSeconds" => self.timeout = u64::try_from(number()?).ok().filter(|seconds| *seconds > 0),
            "allowWatchBookmarks" => self.bookmarks = flag(),
            "sendInitialEvents" => self.initial_events = Some(flag()),
            "gracePeriodSeconds" => self.grace = Some(number()?),
            "force" => self.force = Some(flag()),
            "fieldManager" => self.field_manager = value,
            "labelSelector" => self.labels = value,
            "fieldSelector" => self.fields = value,
            "continue" => self.resume = value,
            "includeObject" => self.include_object = value,
            "resourceVersion" => self.revision = value,
            "propagationPolicy" => self.propagation = Some(Propagation::parse(&value)?),
            "resourceVersionMatch" => {
                self.revision_match = match value.as_str() {
                    "" => Match::Unset,
                    "NotOlderThan" => Match::NotOlderThan,
                    "Exact" => Match::Exact,
                    _ => Match::Unknown(value),
                }
            }
            "dryRun" | "fieldValidation" if options == "ListOptions" => {}
            "dryRun" => {
                if value != "All" {
                    let why = error::FieldError::not_supported("dryRun", serde_json::json!([value]), &["All"]);
                    let kind = error::Named { group: "meta.k8s.io", what: options };
                    return Err(error::invalid(kind, "", &[why]));
                }
                self.dry_run = true;
            }
            "fieldValidation" => {
                self.unknown_fields = match value.as_str() {
                    "" | "Warn" => UnknownFields::Warn,
                    "Strict" => UnknownFields::Strict,
                    "Ignore" => UnknownFields::Ignore,
                    _ => {
                        let supported = ["", "Ignore", "Strict", "Warn"];
                        let why = error::FieldError::not_supported("fieldValidation", value.into(), &supported);
                        let kind = error::Named { group: "meta.k8s.io", what: options };
                        return Err(error::invalid(kind, "", &[why]));
                    }
                }
            }
            // Unknown parameters are ignored, as a real server does.
            _ => {}
        }
        Ok(())
    }
}

impl Query {
    /// Whether the manager's name is one.
    pub(crate) fn check_manager(&self, options: &str) -> Answer<()> {
        refuse(options, &self.manager_errors())
    }

    /// What only a patch must fulfil: an apply has a manager, and nothing else is forced.
    pub(crate) fn check_patch(&self, kind: patch::Kind) -> Answer<()> {
        let mut errors = match (kind, self.force) {
            (patch::Kind::Apply, _) if self.field_manager.is_empty() => {
                vec![error::FieldError::required("fieldManager", "is required for apply patch")]
            }
            (patch::Kind::Apply, _) | (_, None) => Vec::new(),
            (patch::Kind::Merge | patch::Kind::Json | patch::Kind::Strategic, Some(_)) => {
                vec![error::FieldError::forbidden("force", "may not be specified for non-apply patch")]
            }
        };
        errors.extend(self.manager_errors());
        refuse("PatchOptions", &errors)
    }

    fn manager_errors(&self) -> Vec<error::FieldError> {
        let name = &self.field_manager;
        let mut errors = Vec::new();
        if name.len() > LONGEST_NAME {
            errors.push(error::FieldError::too_long("fieldManager", 128));
        }
        for (place, character) in name.char_indices().filter(|(_, character)| !is_printable(*character)) {
            let why = format!("invalid character U+{:04X} (at position {place})", u32::from(character));
            errors.push(error::FieldError::invalid("fieldManager", name.as_str(), why));
        }
        errors
    }
}

fn refuse(options: &str, errors: &[error::FieldError]) -> Answer<()> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(error::invalid(error::Named { group: "meta.k8s.io", what: options }, "", errors))
}

/// What the server calls the parameters of a request.
fn options(method: &http::Method) -> &'static str {
    match method.as_str() {
        "POST" => "CreateOptions",
        "PUT" => "UpdateOptions",
        "PATCH" => "PatchOptions",
        "DELETE" => "DeleteOptions",
        _ => "ListOptions",
    }
}

/// One parameter of a query that is not of an object.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| decode(value)).next()
}

/// Undoes percent-encoding in a path, where a plus is a plus.
fn decode_path(text: &str) -> String {
    decode(&text.replace('+', "%2B"))
}

/// Undoes percent-encoding.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let code = std::str::from_utf8(&digits).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
                bytes.push(code.unwrap_or(b'%'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_an_object_and_a_place() {
        let objects = |path: &str| match Route::parse(path) {
            Route::Objects { plural, namespace, name, part, .. } => (plural, namespace, name, part),
            other @ (Route::CoreVersions
            | Route::Groups
            | Route::Group(_)
            | Route::Resources { .. }
            | Route::Documents
            | Route::Document(_)
            | Route::Version
            | Route::Health
            | Route::Unknown) => panic!("{other:?}"),
        };
        let owned = |a: &str, b: &str, c: &str, d| (a.to_owned(), b.to_owned(), c.to_owned(), d);
        assert_eq!(objects("/api/v1/namespaces/x"), owned("namespaces", "", "x", None));
        assert_eq!(objects("/api/v1/namespaces/x/status"), owned("namespaces", "", "x", Some(Subresource::Status)));
        assert_eq!(objects("/api/v1/namespaces/x/pods"), owned("pods", "x", "", None));
        assert_eq!(
            objects("/api/v1/namespaces/x/pods/a/eviction"),
            owned("pods", "x", "a", Some(Subresource::Eviction))
        );
        assert_eq!(objects("/apis/apps/v1/statefulsets"), owned("statefulsets", "", "", None));
        assert_eq!(Route::parse("/apis/apps/v1"), Route::Resources { group: "apps".into(), version: "v1".into() });
        assert_eq!(Route::parse("/nothing"), Route::Unknown);
    }

    #[test]
    fn a_query_is_decoded() {
        let query =
            Query::parse(&http::Method::POST, "labelSelector=app%20in%20%28a%2Cb%29&limit=5&watch=true&dryRun=All")
                .unwrap();
        assert_eq!(query.labels, "app in (a,b)");
        assert_eq!(query.limit, 5);
        assert!(query.watch && query.dry_run);
        assert_eq!(Query::parse(&http::Method::GET, "limit=x").unwrap_err().code, 400);
    }
}
